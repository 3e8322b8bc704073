//! The identity of the helm binary, found without starting it, and its version where that matters.

use std::ffi::OsString;
use std::fmt;
use std::time::UNIX_EPOCH;

use addon_core::release::ApplyMethod;
use tokio_util::sync::CancellationToken;

use super::{Helm, HelmError, NEWEST_MAJOR, OLDEST, VERSION_DEADLINE, outcry};

/// A version of helm, only its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    /// The first `v1.2.3` of a text.
    pub(super) fn find(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(|word| {
            let numbers = word.strip_prefix('v')?;
            let numbers = numbers.split(['-', '+']).next()?;
            let mut parts = numbers.split('.').map(str::parse);
            let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else {
                return None;
            };
            let patch = parts.next().and_then(Result::ok).unwrap_or(0);
            Some(Self { major, minor, patch })
        })
    }

    /// Whether post-renderers are plugins of it, and objects can be applied by the API server: both came with helm 4.
    pub fn is_4(self) -> bool {
        self.major >= 4
    }

    /// The flags of an upgrade by which objects are applied as they were before.
    ///
    /// Helm 4 by itself lets the API server apply what is new. There, one edit by hand makes the next upgrade fail unless
    /// conflicts are overruled, which is what applying by the client has always done.
    pub(super) fn applying(self, method: ApplyMethod) -> &'static [&'static str] {
        match method {
            ApplyMethod::Client if self.is_4() => &["--server-side=false"],
            ApplyMethod::Server if self.is_4() => &["--server-side=true", "--force-conflicts"],
            ApplyMethod::Client | ApplyMethod::Server => &[],
        }
    }
}

impl Helm {
    /// The binary's version, asked once; an unsuitable one is an error that says what to install.
    pub async fn version(&self) -> Result<Version, HelmError> {
        self.version.get_or_try_init(|| self.ask_version()).await.copied()
    }

    /// The identity of this binary, found without starting it: nothing changed costs no child. Where even that
    /// cannot be told, it is asked, which says what is wrong.
    pub async fn identity(&self) -> Result<String, HelmError> {
        let facts = fs_err::tokio::metadata(&self.options.binary).await;
        match facts.and_then(|facts| Ok((facts.len(), facts.modified()?))) {
            Ok((size, modified)) => {
                let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
                Ok(format!("{size} {}", since.as_nanos()))
            }
            Err(_) => Ok(self.version().await?.to_string()),
        }
    }

    async fn ask_version(&self) -> Result<Version, HelmError> {
        let args = ["version", "--short"].map(OsString::from).into();
        let finished = self
            .run(args, None, VERSION_DEADLINE, &CancellationToken::new())
            .await?;
        // Helm 2 prints its version and fails, because its server part does not answer.
        let text = finished.stdout.text();
        let unsuitable = |found| HelmError::Unsuitable {
            binary: self.options.binary.clone(),
            found,
        };
        let Some(version) = Version::find(&text) else {
            let said = if text.trim().is_empty() {
                finished.stderr.text()
            } else {
                text
            };
            return Err(unsuitable(format!(
                "not helm: its answer is '{}'",
                outcry::excerpt(&said, self.spawner.secrets())
            )));
        };
        if version < OLDEST || version.major > NEWEST_MAJOR {
            return Err(unsuitable(format!("helm {version}")));
        }
        Ok(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}
