//! The output files of a hook.
//!
//! Must never apply anything: the caller applies the output after it has read all files.

use serde::{Deserialize, Serialize};

use crate::values::patch::{BadPatch, Patch, PatchFile};

/// The changes that a hook asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookOutput {
    /// Changes of the `ConfigMap`, which are applied first.
    pub config: Patch,
    /// Changes of the values in memory.
    pub values: Patch,
}

/// The contents of the files that a hook may have written. An empty text asks for nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written<'text> {
    /// The patch of config values.
    pub config_patch: &'text str,
    /// The patch of values.
    pub values_patch: &'text str,
}

impl HookOutput {
    /// Reads the files in the order in which their mistakes are reported.
    pub fn parse(written: Written<'_>) -> Result<Self, BadPatch> {
        Ok(Self {
            config: Patch::parse(written.config_patch, PatchFile::Config)?,
            values: Patch::parse(written.values_patch, PatchFile::Values)?,
        })
    }

    /// The path of the first operation on values. If no operation changes values, the path of the first operation on
    /// config values.
    pub fn first_path(&self) -> Option<&str> {
        self.values.first_path().or_else(|| self.config.first_path())
    }

    /// Whether the hook's output asks for no change.
    pub fn is_empty(&self) -> bool {
        self.config.is_empty() && self.values.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_files_ask_for_nothing() {
        let output = HookOutput::parse(Written {
            config_patch: "",
            values_patch: "\n",
        })
        .unwrap();
        assert!(output.is_empty());
    }

    #[test]
    fn each_file_answers_for_itself() {
        let add = r#"{"op": "add", "path": "/global/a", "value": 1}"#;
        let output = HookOutput::parse(Written {
            config_patch: "",
            values_patch: add,
        })
        .unwrap();
        assert!(output.config.is_empty() && !output.values.is_empty());
        let error = |written| HookOutput::parse(written).unwrap_err().to_string();
        assert_eq!(
            error(Written {
                config_patch: "{",
                values_patch: "{"
            }),
            "got bad json patch for config values"
        );
        assert_eq!(
            error(Written {
                config_patch: add,
                values_patch: "size: 1"
            }),
            "got bad json patch for values"
        );
        let marked = format!("\u{feff}{add}");
        let marked = HookOutput::parse(Written {
            config_patch: "",
            values_patch: &marked,
        });
        assert_eq!(
            std::error::Error::source(&marked.unwrap_err()).unwrap().to_string(),
            "saved with a byte order mark: save it as UTF-8 without one"
        );
    }
}
