//! Assets: the style and the script, each under a name with its digest, so that browsers may keep them.
//!
//! Must never name a file that this program does not serve itself.

use std::fmt::Write as _;
use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

/// A file that the page loads.
#[derive(Debug)]
pub struct Asset {
    /// Its name, with a digest of its text.
    pub name: String,
    /// Its content type.
    pub kind: &'static str,
    pub text: &'static str,
}

static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::named(
        "style",
        "css",
        "text/css; charset=utf-8",
        include_str!("../style/page.css"),
    )
});
static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::named(
        "page",
        "js",
        "text/javascript; charset=utf-8",
        include_str!("../script/page.js"),
    )
});

impl Asset {
    fn named(stem: &str, ending: &str, kind: &'static str, text: &'static str) -> Self {
        let mut digest = String::new();
        for byte in Sha256::digest(text.as_bytes()).iter().take(8) {
            let _ = write!(digest, "{byte:02x}");
        }
        Self {
            name: format!("{stem}.{digest}.{ending}"),
            kind,
            text,
        }
    }
}

pub fn style() -> &'static Asset {
    &STYLE
}

pub fn script() -> &'static Asset {
    &SCRIPT
}

/// The asset with this name.
pub fn named(name: &str) -> Option<&'static Asset> {
    [style(), script()].into_iter().find(|asset| asset.name == name)
}
