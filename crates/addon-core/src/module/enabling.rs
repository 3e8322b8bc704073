//! Which modules run: ordered sources, the last one with an opinion wins, a script may only say no.

use std::fmt;

/// Who decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nobody spoke; off is the default.
    Default,
    /// A common `values.yaml`.
    Static,
    /// A patch of a global hook.
    Dynamic,
    /// The ConfigMap.
    Config,
    /// The module's enabled script, with the reason that it gave.
    Script(Option<String>),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Static => f.write_str("values.yaml"),
            Self::Dynamic => f.write_str("a global hook"),
            Self::Config => f.write_str("ConfigMap"),
            Self::Script(None) => f.write_str("enabled script"),
            Self::Script(Some(reason)) => write!(f, "enabled script: {reason}"),
        }
    }
}

/// On or off, and who said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// It is to run.
    pub enabled: bool,
    /// The source that decided.
    pub source: Source,
}

/// The opinions of the ordinary sources about one module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Opinions {
    /// Of the common `values.yaml` files.
    pub fixed: Option<bool>,
    /// Of global hooks.
    pub dynamic: Option<bool>,
    /// Of the ConfigMap.
    pub config: Option<bool>,
}

impl Opinions {
    /// What they amount to, before a script is asked.
    pub fn verdict(self) -> Verdict {
        let spoken = [
            (self.fixed, Source::Static),
            (self.dynamic, Source::Dynamic),
            (self.config, Source::Config),
        ];
        spoken
            .into_iter()
            .rev()
            .find_map(|(opinion, source)| {
                Some(Verdict {
                    enabled: opinion?,
                    source,
                })
            })
            .unwrap_or(Verdict {
                enabled: false,
                source: Source::Default,
            })
    }
}

impl Verdict {
    /// The verdict after the script spoke: its yes changes nothing.
    #[must_use]
    pub fn after_script(self, enabled: bool, reason: Option<String>) -> Self {
        if enabled {
            self
        } else {
            Self {
                enabled: false,
                source: Source::Script(reason),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_source_with_an_opinion_wins() {
        let table = [
            (None, None, None, false, Source::Default),
            (Some(true), None, None, true, Source::Static),
            (Some(true), Some(false), None, false, Source::Dynamic),
            (Some(false), Some(false), Some(true), true, Source::Config),
            (Some(true), None, Some(false), false, Source::Config),
        ];
        for (fixed, dynamic, config, enabled, source) in table {
            assert_eq!(
                Opinions { fixed, dynamic, config }.verdict(),
                Verdict { enabled, source }
            );
        }
    }

    #[test]
    fn a_script_can_only_say_no() {
        let on = Verdict {
            enabled: true,
            source: Source::Static,
        };
        assert_eq!(on.clone().after_script(true, None), on);
        let off = on.after_script(false, Some("no nodes".to_owned()));
        assert_eq!(off.source.to_string(), "enabled script: no nodes");
    }
}
