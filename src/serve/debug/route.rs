//! Parses a path of the debug socket. Knows nothing of the answer.

use listeners::reply::Format;

/// A document of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    /// The effective values.
    Values,
    /// The section of the `ConfigMap`.
    Config,
    /// The patches of hooks.
    Patches,
}

/// A question with its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route<'a> {
    QueueMain(Format),
    QueueList(Format),
    ModuleList(Format),
    ModuleStatus(Format),
    /// The state of one module.
    ModuleStatusOf {
        name: &'a str,
        format: Format,
    },
    /// The outdated kinds of releases.
    ModuleApis(Format),
    /// Removals that are held.
    ModulePurge(Format),
    /// The watched objects of releases.
    ModuleMonitors(Format),
    /// The graph, which has only one format.
    Graph,
    Module {
        name: &'a str,
        section: Section,
        format: Format,
    },
    GlobalList(Format),
    Global {
        section: Section,
        format: Format,
    },
    ConfigList(Format),
    /// The releases whose configuration is lost.
    ConfigLost(Format),
    /// The state of the channel.
    ChannelStatus(Format),
    /// The sources of all modules, or of one.
    SourceStatus {
        module: Option<&'a str>,
        format: Format,
    },
    /// The hooks of a program without modules.
    HookList(Format),
    HookSnapshots {
        name: &'a str,
        format: Format,
    },
    /// The records of hook runs.
    HookRecords(Format),
    HookRecord {
        id: &'a str,
        format: Format,
    },
    GlobalSnapshots(Format),
    ModuleSnapshots {
        name: &'a str,
        format: Format,
    },
    /// A rendered chart, which has only one format and no extension.
    ModuleRender {
        name: &'a str,
    },
}

/// Every route, for `/discovery`.
pub(super) const PATTERNS: &[&str] = &[
    "GET /",
    "POST /channel/check",
    "GET /channel/status.{format:(json|yaml|text)}",
    "GET /config/list.{format:(json|yaml|text)}",
    "GET /config/lost.{format:(json|yaml|text)}",
    "POST /config/lost",
    "POST /config/set",
    "GET /discovery",
    "GET /global/list.{format:(json|yaml)}",
    "GET /global/{type:(config|values|patches)}.{format:(json|yaml)}",
    "GET /global/snapshots.{format:(json|yaml)}",
    "GET /graph?format=text",
    "GET /hook/list.{format:(json|yaml|text)}",
    "GET /hook/records.{format:(json|yaml)}",
    "GET /hook/records/{id}.{format:(json|yaml)}",
    "POST /hook/record",
    "GET /hook/{name}/snapshots.{format:(json|yaml|text)}",
    "GET /module/apis.{format:(json|yaml)}?target=1.38",
    "GET /module/list.{format:(json|yaml|text)}",
    "GET /module/purge.{format:(json|yaml|text)}",
    "GET /module/resource-monitor.{format:(json|yaml)}",
    "GET /module/status.{format:(json|yaml)}?releases=true",
    "GET /module/{name}/patches.{format:(json|yaml)}",
    "GET /module/{name}/render?debug=true&diff=true",
    "GET /module/{name}/{type:(config|values)}.{format:(json|yaml)}?global=true",
    "GET /module/{name}/status.{format:(json|yaml)}",
    "GET /module/{name}/snapshots.{format:(json|yaml)}",
    "POST /module/purge",
    "POST /module/reload",
    "GET /queue/list.{format:(json|yaml|text)}",
    "GET /queue/list.{format:(json|yaml|text)}?showEmpty=true",
    "GET /queue/main.{format:(json|yaml|text)}",
    "GET /source/status.{format:(json|yaml|text)}",
    "GET /source/{name}/status.{format:(json|yaml|text)}",
    "POST /source/check",
];

impl<'a> Route<'a> {
    /// Parses a path; `None` for an unknown one.
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        if path == "graph" {
            return Some(Self::Graph);
        }
        if let Some(name) = path
            .strip_prefix("module/")
            .and_then(|rest| rest.strip_suffix("/render"))
            && !name.contains('/')
        {
            return Some(Self::ModuleRender { name });
        }
        let (path, extension) = path.rsplit_once('.')?;
        Self::parse_question(path, Format::parse(extension)?)
    }

    /// Parses a path without its extension.
    fn parse_question(path: &'a str, format: Format) -> Option<Self> {
        // The name of a hook is itself a path.
        if let Some(name) = path
            .strip_prefix("hook/")
            .and_then(|rest| rest.strip_suffix("/snapshots"))
        {
            return Some(Self::HookSnapshots { name, format });
        }
        let segments: Vec<&str> = path.split('/').collect();
        let route = match segments[..] {
            ["queue", "main"] => Self::QueueMain(format),
            ["queue", "list"] => Self::QueueList(format),
            ["module", "list"] => Self::ModuleList(format),
            ["module", "purge"] => Self::ModulePurge(format),
            ["config", "list"] => Self::ConfigList(format),
            ["channel", "status"] => Self::ChannelStatus(format),
            ["config", "lost"] => Self::ConfigLost(format),
            ["hook", "list"] => Self::HookList(format),
            ["source", "status"] => Self::SourceStatus { module: None, format },
            ["source", name, "status"] => Self::SourceStatus {
                module: Some(name),
                format,
            },
            // The following routes have no text form.
            _ if format == Format::Text => return None,
            ["hook", "records"] => Self::HookRecords(format),
            ["hook", "records", id] => Self::HookRecord { id, format },
            ["module", "apis"] => Self::ModuleApis(format),
            ["module", "status"] => Self::ModuleStatus(format),
            ["module", "resource-monitor"] => Self::ModuleMonitors(format),
            ["module", name, "status"] => Self::ModuleStatusOf { name, format },
            ["module", name, "snapshots"] => Self::ModuleSnapshots { name, format },
            ["global", "snapshots"] => Self::GlobalSnapshots(format),
            ["module", name, section] => Self::Module {
                name,
                section: Section::parse(section)?,
                format,
            },
            ["global", "list"] => Self::GlobalList(format),
            ["global", section] => Self::Global {
                section: Section::parse(section)?,
                format,
            },
            _ => return None,
        };
        Some(route)
    }
}

impl Route<'_> {
    /// Whether a standby answers as well, because it knows as much as the leader.
    pub(super) fn is_of_each_replica(&self) -> bool {
        matches!(self, Self::ConfigList(_) | Self::ChannelStatus(_))
    }
}

impl Section {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "values" => Some(Self::Values),
            "config" => Some(Self::Config),
            "patches" => Some(Self::Patches),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_questions() {
        let rows = [
            ("/queue/main.text", Route::QueueMain(Format::Text)),
            ("/queue/list.yaml", Route::QueueList(Format::Yaml)),
            ("/module/list.text", Route::ModuleList(Format::Text)),
            ("/module/status.json", Route::ModuleStatus(Format::Json)),
            ("/module/apis.json", Route::ModuleApis(Format::Json)),
            ("/module/purge.text", Route::ModulePurge(Format::Text)),
            ("/module/resource-monitor.yaml", Route::ModuleMonitors(Format::Yaml)),
            ("/graph", Route::Graph),
            ("/config/list.json", Route::ConfigList(Format::Json)),
            ("/channel/status.yaml", Route::ChannelStatus(Format::Yaml)),
            ("/config/lost.text", Route::ConfigLost(Format::Text)),
            ("/global/list.yaml", Route::GlobalList(Format::Yaml)),
            ("/global/snapshots.json", Route::GlobalSnapshots(Format::Json)),
            ("/hook/list.text", Route::HookList(Format::Text)),
            (
                "/hook/sub/a.sh/snapshots.text",
                Route::HookSnapshots {
                    name: "sub/a.sh",
                    format: Format::Text,
                },
            ),
            ("/hook/records.json", Route::HookRecords(Format::Json)),
            (
                "/hook/records/2026-1.yaml",
                Route::HookRecord {
                    id: "2026-1",
                    format: Format::Yaml,
                },
            ),
            ("/module/with.dot/render", Route::ModuleRender { name: "with.dot" }),
            (
                "/module/one/snapshots.yaml",
                Route::ModuleSnapshots {
                    name: "one",
                    format: Format::Yaml,
                },
            ),
            (
                "/global/patches.json",
                Route::Global {
                    section: Section::Patches,
                    format: Format::Json,
                },
            ),
            (
                "/module/with.dot/values.yaml",
                Route::Module {
                    name: "with.dot",
                    section: Section::Values,
                    format: Format::Yaml,
                },
            ),
        ];
        for (path, route) in rows {
            assert_eq!(Route::parse(path), Some(route), "{path}");
        }
    }

    #[test]
    fn other_paths_lead_nowhere() {
        let paths = [
            "/queue/list",
            "/queue/list.xml",
            "/module/one/values.text",
            "/module/status.text",
            "/module/apis.text",
            "/global/values.text",
            "/module/one/two/render",
            "/module/render",
            "/module/one/two/values.json",
            "/nowhere",
            "/nowhere.json",
            "queue/list.json",
            "",
        ];
        for path in paths {
            assert_eq!(Route::parse(path), None, "{path}");
        }
    }
}
