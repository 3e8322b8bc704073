//! The queues for people: the text that the original prints, and the same facts as a document.
//!
//! Blank lines and the wording of the text are a contract with scripts.

use std::fmt::Write as _;

use addon_core::operator::query::{QueueReport, TaskReport};
use report::plural;
use serde::Serialize;

/// The default queue.
const MAIN: &str = "main";

/// All queues as a document.
#[derive(Debug, Serialize)]
pub struct Queues<'a> {
    active: Vec<Queue<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    empty: Vec<Queue<'a>>,
    summary: Summary,
}

/// The document about one queue.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Queue<'a> {
    name: &'a str,
    tasks_count: usize,
    #[serde(skip_serializing_if = "str::is_empty")]
    status: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tasks: Vec<Task<'a>>,
}

#[derive(Debug, Serialize)]
struct Task<'a> {
    index: usize,
    description: &'a str,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    main_queue_tasks: usize,
    other_queues: Others,
    total_tasks: usize,
}

#[derive(Debug, Default, Serialize)]
struct Others {
    active: usize,
    empty: usize,
    tasks: usize,
}

impl Summary {
    fn of(queues: &[QueueReport]) -> Self {
        let mut summary = Self::default();
        for queue in queues {
            let tasks = queue.tasks.len();
            summary.total_tasks += tasks;
            if queue.name == MAIN {
                summary.main_queue_tasks = tasks;
            } else if tasks == 0 {
                summary.other_queues.empty += 1;
            } else {
                summary.other_queues.active += 1;
                summary.other_queues.tasks += tasks;
            }
        }
        summary
    }
}

/// All queues as a document; empty ones only if asked for.
pub fn queues(reports: &[QueueReport], show_empty: bool) -> Queues<'_> {
    let (active, empty): (Vec<&QueueReport>, Vec<&QueueReport>) =
        reports.iter().partition(|queue| !queue.tasks.is_empty());
    let only_main = matches!(empty[..], [QueueReport { name, .. }] if name == MAIN);
    let empty = if show_empty && !only_main { empty } else { Vec::new() };
    Queues {
        active: active.into_iter().map(queue).collect(),
        empty: empty.into_iter().map(queue).collect(),
        summary: Summary::of(reports),
    }
}

fn queue(report: &QueueReport) -> Queue<'_> {
    Queue {
        name: &report.name,
        tasks_count: report.tasks.len(),
        status: &report.status,
        tasks: numbered(&report.tasks).collect(),
    }
}

fn numbered(tasks: &[TaskReport]) -> impl Iterator<Item = Task<'_>> {
    tasks.iter().zip(1..).map(|(task, index)| Task {
        index,
        description: &task.description,
    })
}

/// The queue `main` as a document, even if it does not exist yet.
pub fn main_queue(reports: &[QueueReport]) -> Queue<'_> {
    let absent = Queue {
        name: MAIN,
        tasks_count: 0,
        status: "Queue is not created",
        tasks: Vec::new(),
    };
    reports.iter().find(|report| report.name == MAIN).map_or(absent, queue)
}

/// The queue `main` as text.
pub fn main_text(reports: &[QueueReport]) -> String {
    match reports.iter().find(|report| report.name == MAIN) {
        Some(report) => queue_text(report),
        None => "Queue 'main' is not created\n".to_owned(),
    }
}

/// All queues as text; empty ones only if asked for.
pub fn queues_text(reports: &[QueueReport], show_empty: bool) -> String {
    if reports.is_empty() {
        return "Summary:\n  No queues.\n".to_owned();
    }
    let mut text = String::new();
    for report in reports.iter().filter(|report| !report.tasks.is_empty()) {
        text.push_str(&queue_text(report));
        text.push('\n');
    }
    let empty: Vec<&str> = reports
        .iter()
        .filter(|report| report.tasks.is_empty())
        .map(|report| report.name.as_str())
        .collect();
    let only_main = empty == [MAIN];
    if show_empty && !empty.is_empty() && !only_main {
        let names: Vec<String> = empty.iter().map(|name| format!("- {name}\n")).collect();
        let _ = writeln!(text, "\nEmpty queues ({}):\n{}", empty.len(), names.concat());
    }
    text + &summary_text(&Summary::of(reports))
}

fn queue_text(report: &QueueReport) -> String {
    let mut text = format!(
        "Queue '{}': length {}, status: '{}'\n",
        report.name,
        report.tasks.len(),
        report.status
    );
    if !report.tasks.is_empty() {
        text.push('\n');
    }
    for Task { index, description } in numbered(&report.tasks) {
        let _ = writeln!(text, "{index:2}. {description}");
    }
    text
}

fn summary_text(summary: &Summary) -> String {
    let Summary {
        main_queue_tasks,
        other_queues,
        total_tasks,
    } = summary;
    let main = if *main_queue_tasks == 0 {
        "empty".to_owned()
    } else {
        plural(*main_queue_tasks, "task")
    };
    let mut text = format!("Summary:\n- 'main' queue: {main}.\n");
    let Others { active, empty, tasks } = other_queues;
    if active + empty > 0 {
        let counts = match (active, empty) {
            (0, empty) => format!("{empty} empty"),
            (active, 0) => format!("{active} active"),
            (active, empty) => format!("{active} active, {empty} empty"),
        };
        let others = plural(active + empty, "other queue");
        let _ = writeln!(text, "- {others} ({counts}): {}.", plural(*tasks, "task"));
    }
    if *total_tasks == 0 {
        text.push_str("- no tasks to handle.\n");
    } else {
        let _ = writeln!(text, "- total {} to handle.", plural(*total_tasks, "task"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str, status: &str, descriptions: &[&str]) -> QueueReport {
        let tasks = descriptions.iter().map(|&description| TaskReport {
            kind: "HookRun",
            module: String::new(),
            hook: String::new(),
            description: description.to_owned(),
        });
        QueueReport {
            name: name.into(),
            status: status.into(),
            tasks: tasks.collect(),
        }
    }

    #[test]
    fn two_queues_with_tasks_and_two_without() {
        let reports = [
            report(
                "main",
                "run first task",
                &[
                    "HookRun:main:kubernetes:hook.sh:group=g:name",
                    "HookRun:main:schedule:hook.sh",
                ],
            ),
            report("idle", "", &[]),
            report("rest", "", &[]),
            report("side", "", &["HookRun:side:schedule:hook.sh"]),
        ];
        let expected = "\
Queue 'main': length 2, status: 'run first task'

 1. HookRun:main:kubernetes:hook.sh:group=g:name
 2. HookRun:main:schedule:hook.sh

Queue 'side': length 1, status: ''

 1. HookRun:side:schedule:hook.sh

Summary:
- 'main' queue: 2 tasks.
- 3 other queues (1 active, 2 empty): 1 task.
- total 3 tasks to handle.
";
        assert_eq!(queues_text(&reports, false), expected);
        let with_empty = queues_text(&reports, true);
        assert!(
            with_empty.contains("hook.sh\n\n\nEmpty queues (2):\n- idle\n- rest\n\nSummary:\n"),
            "{with_empty}"
        );
    }

    #[test]
    fn nothing_to_do() {
        assert_eq!(queues_text(&[], true), "Summary:\n  No queues.\n");
        let idle = [report("main", "", &[])];
        assert_eq!(
            queues_text(&idle, true),
            "Summary:\n- 'main' queue: empty.\n- no tasks to handle.\n"
        );
        assert_eq!(main_text(&idle), "Queue 'main': length 0, status: ''\n");
    }

    #[test]
    fn documents_hold_the_same() {
        let reports = [report("main", "run first task", &["a"]), report("side", "", &[])];
        let expected = serde_json::json!({
            "active": [{"name": "main", "tasksCount": 1, "status": "run first task", "tasks": [{"index": 1, "description": "a"}]}],
            "summary": {"mainQueueTasks": 1, "otherQueues": {"active": 0, "empty": 1, "tasks": 0}, "totalTasks": 1}
        });
        assert_eq!(serde_json::to_value(queues(&reports, false)).unwrap(), expected);
        let with_empty = serde_json::to_value(queues(&reports, true)).unwrap();
        assert_eq!(
            with_empty["empty"],
            serde_json::json!([{"name": "side", "tasksCount": 0}])
        );
        assert_eq!(
            serde_json::to_value(main_queue(&[])).unwrap()["status"],
            "Queue is not created"
        );
    }
}
