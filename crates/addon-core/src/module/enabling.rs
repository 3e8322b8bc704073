//! Decides which modules run: the sources have an order, and the last source with an opinion decides. A script can only
//! switch a module off.

use std::fmt;

use names::MODULE_SOURCES;

/// The source of a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// No source has an opinion. The default is off.
    Default,
    /// A common `values.yaml`.
    Static,
    /// The key `moduleSources` names a registry for the module, and no values file has a flag for it.
    Supply,
    /// The patch of a global hook.
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
            Self::Supply => f.write_str(MODULE_SOURCES),
            Self::Dynamic => f.write_str("a global hook"),
            Self::Config => f.write_str("ConfigMap"),
            Self::Script(None) => f.write_str("enabled script"),
            Self::Script(Some(reason)) => write!(f, "enabled script: {reason}"),
        }
    }
}

/// Whether a module runs, and the source that decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the module runs.
    pub enabled: bool,
    /// The source that decided.
    pub source: Source,
}

/// A source of verdicts, by the name that admins use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extender {
    Static,
    Dynamic,
    Config,
    Script,
}

impl Extender {
    const ALL: [Self; 4] = [Self::Static, Self::Dynamic, Self::Config, Self::Script];

    fn name(self) -> &'static str {
        match self {
            Self::Static => "Static",
            Self::Dynamic => "DynamicallyEnabled",
            Self::Config => "KubeConfig",
            Self::Script => "ScriptEnabled",
        }
    }
}

/// The sources of verdicts in their order. The last one with an opinion decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extenders(Vec<Extender>);

impl Default for Extenders {
    fn default() -> Self {
        Self(Extender::ALL.to_vec())
    }
}

impl Extenders {
    /// Reads names with commas between them; `None` if one is unknown or comes twice.
    pub fn parse(text: &str) -> Option<Self> {
        let mut named = Vec::new();
        for name in text.split(',') {
            let extender = Extender::ALL.into_iter().find(|extender| extender.name() == name)?;
            if named.contains(&extender) {
                return None;
            }
            named.push(extender);
        }
        Some(Self(named))
    }

    /// The sources before the script and those behind it; `None` if the script is not used.
    fn around_script(&self) -> Option<(&[Extender], &[Extender])> {
        let at = self.0.iter().position(|extender| *extender == Extender::Script)?;
        Some((&self.0[..at], &self.0[at + 1..]))
    }
}

/// The opinions of all sources except the script about one module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opinions<'a> {
    /// The sources that are used.
    pub extenders: &'a Extenders,
    /// The flag in the common `values.yaml` files.
    pub fixed: Option<bool>,
    /// Whether a registry is named for the module. A registry switches the module on as a values file does.
    pub is_supplied: bool,
    /// The flag that global hooks have set.
    pub dynamic: Option<bool>,
    /// The flag in the ConfigMap.
    pub config: Option<bool>,
}

impl<'a> Opinions<'a> {
    /// Opinions of a module that no source mentions.
    pub fn none(extenders: &'a Extenders) -> Self {
        Self {
            extenders,
            fixed: None,
            is_supplied: false,
            dynamic: None,
            config: None,
        }
    }

    /// The verdict, if the script does not switch the module off.
    pub fn verdict(self) -> Verdict {
        self.verdict_of(&self.extenders.0)
    }

    /// Whether the module's script has to be asked: the sources before the script switch the module on, or there are
    /// sources behind the script, which may do so.
    pub fn ask_script(self) -> bool {
        let around = self.extenders.around_script();
        around.is_some_and(|(before, behind)| !behind.is_empty() || self.verdict_of(before).enabled)
    }

    fn verdict_of(self, extenders: &[Extender]) -> Verdict {
        let said = extenders.iter().rev().find_map(|extender| {
            let (opinion, source) = match extender {
                Extender::Static if self.fixed.is_none() && self.is_supplied => (Some(true), Source::Supply),
                Extender::Static => (self.fixed, Source::Static),
                Extender::Dynamic => (self.dynamic, Source::Dynamic),
                Extender::Config => (self.config, Source::Config),
                Extender::Script => return None,
            };
            Some(Verdict {
                enabled: opinion?,
                source,
            })
        });
        said.unwrap_or(Verdict {
            enabled: false,
            source: Source::Default,
        })
    }
}

impl Verdict {
    /// The verdict after the script answered. A script that says yes changes nothing.
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
                of(&Extenders::default(), fixed, dynamic, config).verdict(),
                Verdict { enabled, source }
            );
        }
    }

    fn of(extenders: &Extenders, fixed: Option<bool>, dynamic: Option<bool>, config: Option<bool>) -> Opinions<'_> {
        Opinions {
            extenders,
            fixed,
            is_supplied: false,
            dynamic,
            config,
        }
    }

    #[test]
    fn a_registry_switches_its_module_on_where_no_flag_says_otherwise() {
        let extenders = Extenders::default();
        let supplied = |fixed, config| {
            let is_supplied = true;
            Opinions {
                is_supplied,
                ..of(&extenders, fixed, None, config)
            }
            .verdict()
        };
        let verdict = |enabled, source| Verdict { enabled, source };
        assert_eq!(supplied(None, None), verdict(true, Source::Supply));
        assert_eq!(supplied(Some(false), None), verdict(false, Source::Static));
        assert_eq!(supplied(None, Some(false)), verdict(false, Source::Config));
        assert_eq!(Source::Supply.to_string(), "moduleSources");
    }

    #[test]
    fn a_list_of_sources_selects_and_orders_them() {
        let (yes, no) = (Some(true), Some(false));
        // Sources, flags of files, hooks and the ConfigMap, the verdict, its source, and whether the script is asked.
        let table = [
            (
                "Static,DynamicallyEnabled,KubeConfig,ScriptEnabled",
                no,
                yes,
                no,
                false,
                Source::Config,
                false,
            ),
            (
                "Static,DynamicallyEnabled,KubeConfig,ScriptEnabled",
                no,
                no,
                yes,
                true,
                Source::Config,
                true,
            ),
            (
                "KubeConfig,DynamicallyEnabled,Static,ScriptEnabled",
                yes,
                no,
                no,
                true,
                Source::Static,
                true,
            ),
            ("KubeConfig,Static", None, yes, None, false, Source::Default, false),
            ("KubeConfig", yes, yes, no, false, Source::Config, false),
            (
                "Static,ScriptEnabled,KubeConfig",
                yes,
                None,
                no,
                false,
                Source::Config,
                true,
            ),
            (
                "Static,ScriptEnabled,KubeConfig",
                None,
                None,
                None,
                false,
                Source::Default,
                true,
            ),
            ("Static,ScriptEnabled", no, None, yes, false, Source::Static, false),
            ("ScriptEnabled", yes, yes, yes, false, Source::Default, false),
        ];
        for (list, fixed, dynamic, config, enabled, source, asks) in table {
            let extenders = Extenders::parse(list).unwrap();
            let opinions = of(&extenders, fixed, dynamic, config);
            assert_eq!(opinions.verdict(), Verdict { enabled, source }, "{list}");
            assert_eq!(opinions.ask_script(), asks, "{list}");
        }
    }

    #[test]
    fn a_list_with_a_name_that_is_unknown_or_comes_twice_is_none() {
        for list in [
            "",
            "Static,kubeConfig",
            "Static, KubeConfig",
            "Static,",
            "Static,KubeConfig,Static",
        ] {
            assert_eq!(Extenders::parse(list), None, "{list}");
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
