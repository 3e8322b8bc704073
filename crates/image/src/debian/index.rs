//! The index of a suite: its packages and their dependencies.
//!
//! It chooses the packages that an image needs. It must never compare versions: the caller has asked apt for the
//! newest.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

/// One package as the index describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stanza {
    pub package: String,
    pub version: String,
    pub filename: String,
    pub sha256: String,
    /// The package's dependencies, each as a list of alternatives.
    depends: Vec<Vec<String>>,
    provides: Vec<String>,
}

/// Packages by name.
#[derive(Clone, Debug, Default)]
pub struct Index {
    stanzas: BTreeMap<String, Stanza>,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum IndexError {
    #[error("the suites have no package {0}")]
    Unknown(String),
    #[error("nothing that {package} needs for '{need}' is in the suites")]
    Unmet { package: String, need: String },
}

impl Index {
    /// Reads what `apt-cache dumpavail` prints.
    pub fn read(text: &str) -> Self {
        let stanzas = text
            .split("\n\n")
            .map(stanza)
            .filter(|stanza| !stanza.filename.is_empty());
        Self {
            stanzas: stanzas.map(|stanza| (stanza.package.clone(), stanza)).collect(),
        }
    }

    /// The wanted packages and all their dependencies, except those in `without`. Among alternatives, a wanted or
    /// already chosen package comes first, then the first one in the package's order.
    pub fn closure(&self, wanted: &BTreeSet<&str>, without: &BTreeSet<&str>) -> Result<Vec<&Stanza>, IndexError> {
        let mut chosen: BTreeMap<&str, &Stanza> = BTreeMap::new();
        let mut open = Vec::new();
        for name in wanted {
            let stanza = self
                .stanzas
                .get(*name)
                .ok_or_else(|| IndexError::Unknown((*name).to_owned()))?;
            chosen.insert(&stanza.package, stanza);
            open.push(stanza);
        }
        while let Some(stanza) = open.pop() {
            for need in &stanza.depends {
                let met = need.iter().any(|name| {
                    without.contains(name.as_str())
                        || chosen
                            .values()
                            .any(|there| there.package == *name || there.provides.contains(name))
                });
                if met {
                    continue;
                }
                let found = need
                    .iter()
                    .find_map(|name| self.stanzas.get(name))
                    .ok_or_else(|| IndexError::Unmet {
                        package: stanza.package.clone(),
                        need: need.join(" | "),
                    })?;
                chosen.insert(&found.package, found);
                open.push(found);
            }
        }
        Ok(chosen.into_values().collect())
    }
}

fn stanza(text: &str) -> Stanza {
    let mut stanza = Stanza::default();
    for (name, value) in text.lines().filter_map(|line| line.split_once(": ")) {
        let value = value.trim();
        match name {
            "Package" => value.clone_into(&mut stanza.package),
            "Version" => value.clone_into(&mut stanza.version),
            "Filename" => value.clone_into(&mut stanza.filename),
            "SHA256" => value.clone_into(&mut stanza.sha256),
            "Depends" | "Pre-Depends" => stanza.depends.extend(value.split(',').map(alternatives)),
            "Provides" => stanza.provides = value.split(',').map(bare).collect(),
            _ => {}
        }
    }
    stanza
}

fn alternatives(need: &str) -> Vec<String> {
    need.split('|').map(bare).collect()
}

/// `libc6:any (>= 2.36)` → `libc6`.
fn bare(need: &str) -> String {
    let end = need.find(['(', '[', '<']).unwrap_or(need.len());
    let name = need[..end].trim();
    name.split_once(':').map_or(name, |(name, _)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "Package: bash
Version: 5
Depends: base (>= 1), tool:any
Pre-Depends: libc6
Filename: pool/bash.deb
SHA256: aa

Package: base
Pre-Depends: awk
Filename: pool/base.deb

Package: mawk
Provides: awk (= 1)
Depends: libc6
Filename: pool/mawk.deb

Package: gawk
Provides: awk
Filename: pool/gawk.deb

Package: tool
Depends: perl (>= 5) | python3, missing | libc6
Filename: pool/tool.deb

Package: perl
Filename: pool/perl.deb

Package: libc6
Filename: pool/libc6.deb

Package: lonely
Depends: nothing-has-this | nor-this
Filename: pool/lonely.deb

Package: installed-but-not-to-be-had
";

    fn closure(wanted: &[&str], without: &[&str]) -> Result<Vec<String>, IndexError> {
        let index = Index::read(INDEX);
        let wanted = wanted.iter().copied().collect();
        let chosen = index.closure(&wanted, &without.iter().copied().collect())?;
        Ok(chosen.into_iter().map(|stanza| stanza.package.clone()).collect())
    }

    #[test]
    fn what_is_needed_comes_along() {
        assert_eq!(
            closure(&["bash", "mawk"], &[]).unwrap(),
            ["base", "bash", "libc6", "mawk", "perl", "tool"]
        );
    }

    #[test]
    fn what_is_wanted_wins_where_there_is_a_choice() {
        assert_eq!(closure(&["base", "gawk"], &[]).unwrap(), ["base", "gawk"]);
        let unmet = IndexError::Unmet {
            package: "base".to_owned(),
            need: "awk".to_owned(),
        };
        assert_eq!(closure(&["base"], &[]), Err(unmet));
    }

    #[test]
    fn what_we_do_without_stays_out_with_all_that_only_it_needs() {
        assert_eq!(
            closure(&["bash", "mawk"], &["tool"]).unwrap(),
            ["base", "bash", "libc6", "mawk"]
        );
    }

    #[test]
    fn what_is_nowhere_is_told() {
        assert_eq!(closure(&["emacs"], &[]), Err(IndexError::Unknown("emacs".to_owned())));
        let known = closure(&["installed-but-not-to-be-had"], &[]);
        assert_eq!(
            known,
            Err(IndexError::Unknown("installed-but-not-to-be-had".to_owned()))
        );
        let need = "nothing-has-this | nor-this".to_owned();
        assert_eq!(
            closure(&["lonely"], &[]),
            Err(IndexError::Unmet {
                package: "lonely".to_owned(),
                need
            })
        );
    }

    #[test]
    fn a_stanza_keeps_what_a_lock_needs() {
        let index = Index::read(INDEX);
        let bash = &index.stanzas["bash"];
        assert_eq!(
            (bash.version.as_str(), bash.filename.as_str(), bash.sha256.as_str()),
            ("5", "pool/bash.deb", "aa")
        );
    }
}
