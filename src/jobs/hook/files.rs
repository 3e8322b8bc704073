//! The files of one run: what a hook reads and writes, under the names that hook authors know.
//!
//! Hooks of modules and hooks that stand alone know different ones. Must never keep a file longer than the run.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::ConfigVersion;
use addon_core::hook::context::{self, BindingContext, Snapshots};
use addon_core::hook::output::{HookOutput, Written};
use addon_core::metric::{self, Parsed};
use addon_core::name::{HookId, Owner};
use addon_core::object::patch::{self, Operation};
use addon_core::values::patch::PatchFile;

use crate::jobs::tmp::{TmpDir, TmpFile, safe};

/// The values that a hook reads where there are modules.
pub(super) struct Documents {
    pub(super) values: Vec<u8>,
    pub(super) config_values: Vec<u8>,
}

/// What a hook asks for.
pub(super) struct Wrote {
    pub(super) values: HookOutput,
    pub(super) metrics: Parsed,
    pub(super) objects: Vec<Operation>,
}

pub(super) struct Files {
    contexts: TmpFile,
    metrics: TmpFile,
    object_patch: TmpFile,
    with: With,
}

/// What else there is.
enum With {
    Values {
        values: TmpFile,
        config_values: TmpFile,
        values_patch: TmpFile,
        config_patch: TmpFile,
    },
    /// A hook that stands alone may be asked by the API server.
    Responses { admission: TmpFile, conversion: TmpFile },
}

impl Files {
    /// All files, with nothing in that of the contexts yet.
    pub(super) fn create(tmp: &TmpDir, hook: &HookId, documents: Option<Documents>) -> io::Result<Self> {
        match documents {
            Some(documents) => Self::with_values(tmp, hook, &documents),
            None => Self::alone(tmp, hook),
        }
    }

    /// Writes the contexts, object by object: all of them need not fit into memory twice.
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
        let Documents { values, config_values } = documents;
        Ok(Self {
            contexts: tmp.file(&format!("{owner}.{kind}-{name}-binding-context-"), ".json", b"")?,
            with: With::Values {
                values: tmp.file(&format!("{of_owner}-values-"), ".json", values)?,
                config_values: tmp.file(&format!("{of_owner}-config-values-"), ".json", config_values)?,
                values_patch: tmp.file(&format!("{name}.{kind}-values-"), ".json-patch", b"")?,
                config_patch: tmp.file(&format!("{name}.{kind}-config-values-"), ".json-patch", b"")?,
            },
            metrics: tmp.file(&format!("{name}.{kind}-metrics-"), ".json", b"")?,
            object_patch: tmp.file(&format!("{name}-object-patch-"), "", b"")?,
        })
    }

    fn alone(tmp: &TmpDir, hook: &HookId) -> io::Result<Self> {
        let path = hook.name.as_str();
        let name = safe(path.rsplit('/').next().unwrap_or(path));
        let file = |what: &str| tmp.file(&format!("hook-{name}-{what}-"), ".json", b"");
        Ok(Self {
            contexts: file("binding-context")?,
            metrics: file("metrics")?,
            with: With::Responses {
                admission: file("admission-response")?,
                conversion: file("conversion-response")?,
            },
            object_patch: tmp.file(&format!("{name}-object-patch-"), "", b"")?,
        })
    }

    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut files = vec![
            ("BINDING_CONTEXT_PATH", &self.contexts),
            ("METRICS_PATH", &self.metrics),
            ("KUBERNETES_PATCH_PATH", &self.object_patch),
        ];
        match &self.with {
            With::Values {
                values,
                config_values,
                values_patch,
                config_patch,
            } => files.extend([
                ("VALUES_PATH", values),
                ("CONFIG_VALUES_PATH", config_values),
                ("VALUES_JSON_PATCH_PATH", values_patch),
                ("CONFIG_VALUES_JSON_PATCH_PATH", config_patch),
            ]),
            With::Responses { admission, conversion } => files.extend([
                ("ADMISSION_RESPONSE_PATH", admission),
                // The same by its older name.
                ("VALIDATING_RESPONSE_PATH", admission),
                ("CONVERSION_RESPONSE_PATH", conversion),
            ]),
        }
        files
            .into_iter()
            .map(|(name, file)| (name.into(), file.path().into()))
            .collect()
    }

    /// What a hook that ended well wrote, read in one go: if any of it cannot be understood, none of it counts.
    pub(super) fn written(&self) -> Result<Wrote, Failure> {
        let values = self.values()?;
        let metrics = read(&self.metrics, "metrics")?;
        let metrics = metric::parse(&metrics).map_err(|error| Failure::of(Class::HookFailed, &error))?;
        let objects = read(&self.object_patch, "object patches")?;
        let objects = patch::parse(&objects).map_err(|error| Failure::of(Class::HookFailed, &error))?;
        Ok(Wrote {
            values,
            metrics,
            objects,
        })
    }

    /// The object patches that are to be carried out although the hook failed. A file that cannot be understood holds
    /// none: the failure of the hook says enough.
    pub(super) fn tolerated(&self) -> Vec<Operation> {
        let text = self.object_patch.read().unwrap_or_default();
        patch::parse_tolerated(&text).unwrap_or_default()
    }

    fn values(&self) -> Result<HookOutput, Failure> {
        let With::Values {
            values_patch,
            config_patch,
            ..
        } = &self.with
        else {
            return Ok(HookOutput::default());
        };
        let read = |file: &TmpFile, kind: PatchFile| read(file, &format!("json patch for {kind}"));
        let config_patch = read(config_patch, PatchFile::Config)?;
        let values_patch = read(values_patch, PatchFile::Values)?;
        let written = Written {
            config_patch: &config_patch,
            values_patch: &values_patch,
        };
        HookOutput::parse(written).map_err(|error| Failure::of(Class::HookFailed, &error))
    }
}

fn read(file: &TmpFile, what: &str) -> Result<String, Failure> {
    file.read()
        .map_err(|error| Failure::new(Class::HookFailed, format!("got bad {what}: {error}")))
}
