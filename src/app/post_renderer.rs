//! What our binary does when helm calls it: manifests come in, manifests with labels go out.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use fs_err as fs;
use thiserror::Error;

use super::FAILED;
use crate::helm::labels::{LabelError, add_labels};
use crate::report::{Chain, Report};

#[derive(Debug, Error)]
enum RenderError {
    #[error("'{text}' is no label, it should be NAME=VALUE")]
    Label { text: String },
    #[error("cannot read the manifests")]
    Read(#[source] io::Error),
    #[error("cannot add labels")]
    Add(#[from] LabelError),
    #[error("cannot write the manifests")]
    Write(#[source] io::Error),
}

/// Copies manifests from standard input to standard output and adds labels, `NAME=VALUE`, to their objects. An error is
/// also written to the file for complaints.
pub fn post_render(labels: &[String], complaints: Option<&Path>) -> ExitCode {
    match render(labels, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Helm 3 shows what stands on standard error, helm 4 does not. When both ways are gone, the exit code has to do.
            if let Some(file) = complaints {
                drop(fs::write(file, Chain(&error).to_string()));
            }
            drop(write!(io::stderr(), "{}", Report::new(&error)));
            ExitCode::from(FAILED)
        }
    }
}

fn render(labels: &[String], mut from: impl Read, mut to: impl Write) -> Result<(), RenderError> {
    let split = |text: &String| {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| RenderError::Label { text: text.clone() })?;
        Ok((name.to_owned(), value.to_owned()))
    };
    let labels: BTreeMap<String, String> = labels.iter().map(split).collect::<Result<_, RenderError>>()?;
    let mut manifests = String::new();
    from.read_to_string(&mut manifests).map_err(RenderError::Read)?;
    let labelled = add_labels(&manifests, &labels)?;
    to.write_all(labelled.as_bytes())
        .and_then(|()| to.flush())
        .map_err(RenderError::Write)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(labels: &[&str], manifests: &str) -> Result<String, String> {
        let labels: Vec<String> = labels.iter().copied().map(str::to_owned).collect();
        let mut out = Vec::new();
        render(&labels, manifests.as_bytes(), &mut out).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn labels_of_the_command_line_are_added() {
        let out = rendered(
            &["heritage=addon-operator", "a=b=c"],
            "kind: ConfigMap\nmetadata: {name: x}\n",
        )
        .unwrap();
        assert!(
            out.contains("heritage: addon-operator") && out.contains("a: b=c"),
            "{out}"
        );
    }

    #[test]
    fn what_is_no_label_is_named() {
        assert_eq!(
            rendered(&["heritage"], "").unwrap_err(),
            "'heritage' is no label, it should be NAME=VALUE"
        );
    }
}
