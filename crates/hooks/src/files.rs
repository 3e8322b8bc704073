//! The files that a hook reads and writes in one run. Their names are a contract with hooks.
//!
//! With modules and without, hooks have different files. Must never keep a file longer than the run.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::ConfigVersion;
use addon_core::hook::context::{self, BindingContext, Snapshots};
use addon_core::hook::output::{HookOutput, Written};
use addon_core::metric::{self, Parsed};
use addon_core::object::patch::{self, Operation};
use addon_core::review::response::HookResponse;
use addon_core::values::patch::PatchFile;
use names::{HookId, Owner};

use crate::records::record::RunFile;
use jobs::tmp::{TmpDir, TmpFile, safe};

/// The values that a hook with modules reads.
pub(super) struct Documents {
    pub(super) values: Vec<u8>,
    pub(super) config_values: Vec<u8>,
    /// Whether the API server waits for the hook's answer.
    pub(super) is_asked: bool,
}

/// The output of a hook.
#[derive(Debug)]
pub struct Wrote {
    /// The patches of values and config values.
    pub values: HookOutput,
    /// The operations on metrics.
    pub metrics: Parsed,
    /// The answers to the API server.
    pub response: HookResponse,
    /// The object patches.
    pub objects: Vec<Operation>,
}

pub(super) struct Files {
    contexts: TmpFile,
    metrics: TmpFile,
    object_patch: TmpFile,
    values: Option<Values>,
    responses: Option<Responses>,
}

/// The values files of hooks with modules.
struct Values {
    effective: TmpFile,
    config: TmpFile,
    patch: TmpFile,
    config_patch: TmpFile,
}

/// The files for answers to the API server. Hooks without modules always have them, even without a review.
struct Responses {
    admission: TmpFile,
    conversion: TmpFile,
}

impl Files {
    /// Creates all files; the file of the binding contexts is still empty.
    pub(super) fn create(tmp: &TmpDir, hook: &HookId, documents: Option<Documents>) -> io::Result<Self> {
        match documents {
            Some(documents) => Self::with_values(tmp, hook, &documents),
            None => Self::alone(tmp, hook),
        }
    }

    /// Writes the binding contexts object by object, so that they need not be in memory twice.
    pub(super) fn tell(
        &self,
        contexts: &[BindingContext],
        version: ConfigVersion,
        snapshots: &Snapshots,
    ) -> io::Result<()> {
        let file = fs_err::OpenOptions::new().write(true).open(self.contexts.path())?;
        let mut out = BufWriter::new(file);
        context::write_file(&mut out, contexts, version, snapshots)?;
        out.flush()
    }

    /// Writes this text as the binding contexts.
    pub(super) fn tell_literally(&self, contexts: &[u8]) -> io::Result<()> {
        fs_err::write(self.contexts.path(), contexts)
    }

    fn with_values(tmp: &TmpDir, hook: &HookId, documents: &Documents) -> io::Result<Self> {
        let name = safe(hook.name.as_str());
        let (owner, kind) = match &hook.owner {
            Owner::Global => ("global".to_owned(), "global-hook"),
            Owner::Module(module) => (module.to_string(), "module-hook"),
        };
        let of_owner = hook
            .owner
            .module()
            .map_or_else(|| "global-hook".to_owned(), |module| format!("{module}.module"));
        let Documents {
            values,
            config_values,
            is_asked,
        } = documents;
        let response = |what: &str| tmp.file(&format!("{name}.{kind}-{what}-response-"), ".json", b"");
        Ok(Self {
            contexts: tmp.file(&format!("{owner}.{kind}-{name}-binding-context-"), ".json", b"")?,
            values: Some(Values {
                effective: tmp.file(&format!("{of_owner}-values-"), ".json", values)?,
                config: tmp.file(&format!("{of_owner}-config-values-"), ".json", config_values)?,
                patch: tmp.file(&format!("{name}.{kind}-values-"), ".json-patch", b"")?,
                config_patch: tmp.file(&format!("{name}.{kind}-config-values-"), ".json-patch", b"")?,
            }),
            responses: if *is_asked {
                Some(Responses {
                    admission: response("admission")?,
                    conversion: response("conversion")?,
                })
            } else {
                None
            },
            metrics: tmp.file(&format!("{name}.{kind}-metrics-"), ".json", b"")?,
            object_patch: tmp.file(&format!("{name}-object-patch-"), "", b"")?,
        })
    }

    fn alone(tmp: &TmpDir, hook: &HookId) -> io::Result<Self> {
        let path = hook.name.as_str();
        let name = path.rsplit('/').next().unwrap_or(path);
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let file = |what: &str| tmp.file(&format!("hook-{name}-{what}-"), ".json", b"");
        Ok(Self {
            contexts: file("binding-context")?,
            metrics: file("metrics")?,
            values: None,
            responses: Some(Responses {
                admission: file("admission-response")?,
                conversion: file("conversion-response")?,
            }),
            object_patch: tmp.file(&format!("{name}-object-patch-"), "", b"")?,
        })
    }

    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        let variables = self.listed().into_iter().flat_map(|(kind, file)| {
            kind.variables()
                .iter()
                .map(|variable| (OsString::from(variable), file.path().into()))
        });
        variables.collect()
    }

    /// All files with their uses.
    pub(super) fn listed(&self) -> Vec<(RunFile, &TmpFile)> {
        let mut files = vec![
            (RunFile::Contexts, &self.contexts),
            (RunFile::Metrics, &self.metrics),
            (RunFile::ObjectPatches, &self.object_patch),
        ];
        if let Some(values) = &self.values {
            files.extend([
                (RunFile::Values, &values.effective),
                (RunFile::ConfigValues, &values.config),
                (RunFile::ValuesPatch, &values.patch),
                (RunFile::ConfigPatch, &values.config_patch),
            ]);
        }
        if let Some(responses) = &self.responses {
            files.extend([
                (RunFile::Admission, &responses.admission),
                (RunFile::Conversion, &responses.conversion),
            ]);
        }
        files
    }

    /// Reads the output of a successful hook. If one file cannot be parsed, none of them counts.
    pub(super) fn written(&self) -> Result<Wrote, Failure> {
        let values = self.values()?;
        let metrics = read(&self.metrics, "metrics")?;
        let metrics = metric::parse(&metrics).map_err(Failure::from)?;
        let response = self.response()?;
        let objects = read(&self.object_patch, "object patches")?;
        let objects = patch::parse(&objects).map_err(Failure::from)?;
        Ok(Wrote {
            values,
            metrics,
            response,
            objects,
        })
    }

    fn response(&self) -> Result<HookResponse, Failure> {
        let Some(Responses { admission, conversion }) = &self.responses else {
            return Ok(HookResponse::default());
        };
        let admission = read(admission, "validating response")?;
        let conversion = read(conversion, "conversion response")?;
        HookResponse::parse(&admission, &conversion).map_err(|error| Failure::of(Class::HookFailed, &error))
    }

    /// The object patches that are carried out even though the hook failed. An invalid file has none: the hook's
    /// failure is reported anyway.
    pub(super) fn tolerated(&self) -> Vec<Operation> {
        let text = self.object_patch.read().unwrap_or_default();
        patch::parse_tolerated(&text).unwrap_or_default()
    }

    fn values(&self) -> Result<HookOutput, Failure> {
        let Some(Values {
            patch, config_patch, ..
        }) = &self.values
        else {
            return Ok(HookOutput::default());
        };
        let read = |file: &TmpFile, kind: PatchFile| read(file, &format!("json patch for {kind}"));
        let config_patch = read(config_patch, PatchFile::Config)?;
        let values_patch = read(patch, PatchFile::Values)?;
        let written = Written {
            config_patch: &config_patch,
            values_patch: &values_patch,
        };
        HookOutput::parse(written).map_err(|error| Failure::of(Class::HookFailed, &error))
    }
}

fn read(file: &TmpFile, what: &str) -> Result<String, Failure> {
    file.read().map_err(|error| {
        let failure = Failure::new(Class::HookFailed, format!("got bad {what}: {error}"));
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use names::HookName;
    use settings::TmpFiles;

    use super::*;

    fn files(dir: &Path, documents: Option<Documents>) -> (TmpDir, Files) {
        let tmp = TmpDir::prepare(dir, TmpFiles::Removed).unwrap();
        let hook = HookId {
            owner: Owner::Global,
            name: HookName::parse("a.sh").unwrap(),
        };
        let files = Files::create(&tmp, &hook, documents).unwrap();
        (tmp, files)
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a hook's commands, without a run")]
    fn of_each_file_that_a_hook_may_write_only_a_file_is_read() {
        let asked = || Documents {
            values: Vec::new(),
            config_values: Vec::new(),
            is_asked: true,
        };
        let dir = tempfile::tempdir().unwrap();
        let names = |documents| -> Vec<OsString> {
            let (_tmp, files) = files(dir.path(), documents);
            files.environment().into_iter().map(|(name, _)| name).collect()
        };
        // The hook only reads these.
        let given = ["BINDING_CONTEXT_PATH", "VALUES_PATH", "CONFIG_VALUES_PATH"];
        let cases: [&dyn Fn() -> Option<Documents>; 2] = [&|| None, &|| Some(asked())];
        for documents in cases {
            for name in names(documents())
                .into_iter()
                .filter(|name| !given.iter().any(|given| name == given))
            {
                for vandal in [
                    "truncate -s 800M \"$0\"",
                    "rm \"$0\"; mkfifo \"$0\"",
                    "rm \"$0\"; mkdir \"$0\"",
                ] {
                    let (_tmp, files) = files(dir.path(), documents());
                    files.written().unwrap();
                    let path = files
                        .environment()
                        .into_iter()
                        .find(|(other, _)| *other == name)
                        .unwrap()
                        .1;
                    let done = Command::new("sh").args(["-c", vandal]).arg(path).status().unwrap();
                    assert!(done.success());
                    let failure = files.written().map(drop).unwrap_err();
                    assert!(failure.report.starts_with("got bad "), "{name:?}: {failure}");
                    assert!(!failure.hints.is_empty(), "{name:?}: {failure}");
                }
            }
        }
    }
}
