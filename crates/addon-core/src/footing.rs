//! What a version of the operator stands on: the chart that installed it, and the state that other versions left.
//!
//! The image says it in annotations, so that a version can be judged before it runs. Image and operator take the numbers
//! from here; nobody else must ever write one.

/// The annotation that names the lowest version of the chart that can install a version.
pub const LOWEST_CHART_KEY: &str = "addon-operator/lowest-chart";
/// The annotation that names the formats of our state that a version can read, with commas between them.
pub const STATE_FORMATS_KEY: &str = "addon-operator/state-formats";

/// The lowest version of the chart that can install this version: the one that last brought what it cannot do without.
pub const LOWEST_CHART: &str = "0.1.0";
/// The format in which this version writes its state. A new one is for what an older reader would misunderstand.
pub const STATE_FORMAT: &str = "1";
/// All formats that this version can read.
pub const STATE_FORMATS: [&str; 1] = [STATE_FORMAT];

/// What the image of this version says of it.
pub fn annotations() -> [(&'static str, String); 2] {
    [
        (LOWEST_CHART_KEY, LOWEST_CHART.to_owned()),
        (STATE_FORMATS_KEY, STATE_FORMATS.join(",")),
    ]
}

/// Whether one of these formats, as an annotation names them, is the one in which we write.
pub fn reads_ours(formats: &str) -> bool {
    formats.split(',').any(|format| format.trim() == STATE_FORMAT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_version_reads_what_it_writes() {
        let [_, (key, formats)] = annotations();
        assert_eq!(key, STATE_FORMATS_KEY);
        assert!(reads_ours(&formats));
    }

    #[test]
    fn formats_are_compared_whole() {
        for (formats, ours) in [
            ("1", true),
            ("2, 1,3", true),
            ("", false),
            ("11", false),
            ("2", false),
            ("0,2", false),
        ] {
            assert_eq!(reads_ours(formats), ours, "{formats}");
        }
    }
}
