//! The identity of helm's binary, found without starting it, and its version.

use std::ffi::OsString;
use std::fmt;
use std::time::UNIX_EPOCH;

use addon_core::release::ApplyMethod;
use tokio_util::sync::CancellationToken;

use super::{Helm, HelmError, NEWEST_MAJOR, OLDEST, VERSION_DEADLINE, outcry};

/// A version of helm as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    /// The first `v1.2.3` in a text.
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

    /// Whether this is helm 4, in which post-renderers are plugins and the API server can apply objects.
    pub fn is_4(self) -> bool {
        self.major >= 4
    }

    /// The flags of an upgrade that keep the way in which the objects were applied.
    ///
    /// By default helm 4 uses server-side apply for new releases. Then one edit by hand makes the next upgrade fail
    /// unless conflicts are overruled, as client-side apply has always done.
    pub(super) fn applying(self, method: ApplyMethod) -> &'static [&'static str] {
        match method {
            ApplyMethod::Client if self.is_4() => &["--server-side=false"],
            ApplyMethod::Server if self.is_4() => &["--server-side=true", "--force-conflicts"],
            ApplyMethod::Client | ApplyMethod::Server => &[],
        }
    }
}

impl Helm {
    /// The version of the binary, read once. An unsuitable version is an error that says what to install.
    pub async fn version(&self) -> Result<Version, HelmError> {
        self.version.get_or_try_init(|| self.ask_version()).await.copied()
    }

    /// The identity of the binary, found without starting it, so that an unchanged release needs no child. If the file
    /// cannot be read, the binary is started, and its failure is the error.
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
            .run(args, None, &[], VERSION_DEADLINE, &CancellationToken::new())
            .await?;
        // Helm 2 prints its version and then fails, because its server does not answer.
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
