//! `post-renderer`: the command that helm calls for every manifest of ours.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use helm::post_renderer::{self, Claim};

/// The labels that helm's output gets.
#[derive(Debug, Args)]
pub(super) struct PostRenderer {
    /// Where an error is written, for a caller that cannot see standard error
    #[arg(long, value_name = "FILE")]
    complaints: Option<PathBuf>,
    /// The labels, as NAME=VALUE
    #[arg(value_name = "LABEL")]
    labels: Vec<String>,
    /// Objects that stay when the release goes
    #[arg(long, value_name = "OBJECT", requires = "claims")]
    keep: Vec<String>,
    /// Objects that are left out
    #[arg(long, value_name = "OBJECT", requires = "claims")]
    leave_out: Vec<String>,
    /// The file in which the objects are claimed
    #[arg(long, value_name = "FILE", requires = "release", requires = "namespace")]
    claims: Option<PathBuf>,
    /// The release that claims them
    #[arg(long)]
    release: Option<String>,
    /// The namespace of objects that name none
    #[arg(long)]
    namespace: Option<String>,
}

impl PostRenderer {
    pub(super) fn run(self) -> ExitCode {
        let claim = self.claims.zip(self.release).zip(self.namespace);
        let claim = claim.map(|((file, release), namespace)| Claim {
            file,
            release,
            namespace,
            kept: self.keep.into_iter().collect(),
            withheld: self.leave_out.into_iter().collect(),
        });
        post_renderer::post_render(&self.labels, claim.as_ref(), self.complaints.as_deref())
    }
}
