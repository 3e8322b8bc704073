//! The prerequisites of a version of the operator: the chart that installed it, and the state that other versions left.
//!
//! The image carries these facts in annotations, so that a version can be judged before it runs. Image and operator take
//! the numbers from here. No other place may define them.

/// The annotation that names the lowest version of the chart that can install a version.
pub const LOWEST_CHART_KEY: &str = "addon-operator/lowest-chart";
/// The annotation that names the formats of our state that a version can read, with commas between them.
pub const STATE_FORMATS_KEY: &str = "addon-operator/state-formats";

/// The lowest version of the chart that can install this version: the last chart that added something necessary.
pub const LOWEST_CHART: &str = "0.1.0";
/// The format in which this version writes its state. The number is increased when an older version would misread the
/// state.
pub const STATE_FORMAT: &str = "1";
/// All formats that this version can read.
pub const STATE_FORMATS: [&str; 1] = [STATE_FORMAT];

/// The annotations of this version's image.
pub fn annotations() -> [(&'static str, String); 2] {
    [
        (LOWEST_CHART_KEY, LOWEST_CHART.to_owned()),
        (STATE_FORMATS_KEY, STATE_FORMATS.join(",")),
    ]
}
