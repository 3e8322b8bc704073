//! The text of a plan, for people. One line for each change; signs as in a difference: `+` new, `~` changed, `-` gone.
//!
//! Must never leave out a change without saying how many are left out.

use std::fmt::Write as _;

use command::paint::{Paint, Tone};
use serde_json::Value;

use crate::document::{Act, End, HookPlan, ModulePlan, ObjectAct, ObjectPlan, Plan, Refused, ReleasePlan, ValuesOf};
use crate::fields::Field;

/// The largest number of fields that are shown of one object, or of one module's values.
const MOST_FIELDS: usize = 20;
/// The longest value that is shown, in characters.
const LONGEST: usize = 200;

/// The plan for a person.
pub fn text(plan: &Plan, paint: Paint) -> String {
    let mut text = String::new();
    for (number, module) in plan.modules.iter().enumerate() {
        let _ = writeln!(text, "{}", of_module(number + 1, module, paint));
    }
    if !plan.global.is_empty() || !plan.hooks.is_empty() {
        text.push_str("global\n");
        fields(&mut text, "values", &plan.global, paint);
        hooks(&mut text, &plan.hooks);
        text.push('\n');
    }
    list(&mut text, "not applied", &plan.refused, paint);
    list(&mut text, "held until a person confirms", &plan.held, paint);
    for warning in &plan.warnings {
        let _ = writeln!(text, "{}: {warning}\n", paint.paint(Tone::Waiting, "warning"));
    }
    for left_out in &plan.left_out {
        let _ = writeln!(text, "left out of this plan: {left_out}\n");
    }
    if !plan.unfinished.is_empty() {
        let unfinished = plan.unfinished.join(", ");
        let _ = writeln!(
            text,
            "still at work, so that more may follow than this plan says: {unfinished}\n"
        );
    }
    text + &summary(plan)
}

/// The numbers of what would happen.
fn summary(plan: &Plan) -> String {
    if plan.is_empty() {
        return "nothing would change\n".to_owned();
    }
    let count = |act: Act| plan.modules.iter().filter(|module| module.act == act).count();
    let objects = |acts: &[ObjectAct]| {
        let releases = plan.modules.iter().filter_map(|module| module.release.as_ref());
        let crds = plan.modules.iter().flat_map(|module| &module.crds);
        releases
            .flat_map(|release| &release.objects)
            .chain(crds)
            .filter(|object| acts.contains(&object.act))
            .count()
    };
    let parts = [
        (count(Act::SwitchOn), "switched on"),
        (count(Act::Run), "run again"),
        (count(Act::Remove), "removed"),
        (count(Act::Wait), "wait"),
    ];
    let modules: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, words)| format!("{number} {words}"))
        .collect();
    let modules = if modules.is_empty() {
        "none".to_owned()
    } else {
        modules.join(", ")
    };
    let (new, changed) = (
        objects(&[ObjectAct::Create]),
        objects(&[ObjectAct::Change, ObjectAct::Replace]),
    );
    let (gone, bad) = (
        objects(&[ObjectAct::Delete]),
        objects(&[ObjectAct::Refused, ObjectAct::Unserved, ObjectAct::NoNamespace]),
    );
    let mut text = format!("modules: {modules}; objects: {new} created, {changed} changed, {gone} deleted");
    if bad > 0 {
        let _ = write!(text, ", {bad} refused");
    }
    text + "\n"
}

fn of_module(number: usize, module: &ModulePlan, paint: Paint) -> String {
    let (act, tone) = match module.act {
        Act::SwitchOn => ("is switched on, and runs", Tone::Good),
        Act::Run => ("runs", Tone::Waiting),
        Act::Remove if module.release.is_none() => ("is switched off", Tone::Bad),
        Act::Remove => ("is removed", Tone::Bad),
        Act::Wait => ("would run, and waits", Tone::Waiting),
    };
    let mut text = format!("{number}. {} {}", module.name, paint.paint(tone, act));
    if matches!(module.act, Act::SwitchOn | Act::Remove) && !module.because.is_empty() {
        let _ = write!(text, " ({})", module.because);
    }
    text.push('\n');
    if let Some(files) = &module.files {
        let _ = writeln!(text, "   files    {files}");
    }
    fields(&mut text, "values", &module.values, paint);
    if !module.crds.is_empty() {
        text.push_str("   crds     come first\n");
        module.crds.iter().for_each(|crd| of_object(&mut text, crd, paint));
    }
    hooks(&mut text, &module.hooks);
    if !module.waits_for.is_empty() {
        let _ = writeln!(text, "   waits    {}", module.waits_for);
    }
    if let Some(error) = &module.error {
        let _ = writeln!(text, "   {}    {error}", paint.paint(Tone::Bad, "error"));
        for hint in &module.hints {
            let _ = writeln!(text, "            hint: {hint}");
        }
    }
    if let Some(release) = &module.release {
        of_release(&mut text, release, paint);
    }
    text
}

fn hooks(text: &mut String, hooks: &[HookPlan]) {
    for (at, hook) in hooks.iter().enumerate() {
        let title = if at == 0 { "hooks" } else { "" };
        let values = match hook.values {
            ValuesOf::Try => "tried",
            ValuesOf::LastRun => "with the values of its last run",
            ValuesOf::NoRun => "which has not run: its values are not known",
        };
        let _ = writeln!(text, "   {title:<8} {} ({}), {values}", hook.hook, hook.binding);
        for patch in &hook.patches {
            let _ = writeln!(text, "              asks for: {patch}");
        }
    }
}

fn of_release(text: &mut String, release: &ReleasePlan, paint: Paint) {
    let end = match release.end {
        End::Unchanged => "no object changes",
        End::LeftAlone => "its objects are left alone",
        End::Upgrade => "a new revision",
        End::Repair => "its records are repaired first",
        End::Return => "goes back",
        End::Removal => "is uninstalled",
        End::Fails => "does not succeed",
    };
    let tone = if release.end == End::Fails {
        Tone::Bad
    } else {
        Tone::Neutral
    };
    let reason = if release.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", release.reason)
    };
    let _ = writeln!(text, "   release  {}{reason}", paint.paint(tone, end));
    for hint in &release.hints {
        let _ = writeln!(text, "            hint: {hint}");
    }
    for object in &release.objects {
        of_object(text, object, paint);
    }
    for hook in &release.chart_hooks {
        let events = hook.events.join(", ");
        let _ = writeln!(text, "     > {} {} (helm hook: {events})", hook.kind, hook.name);
    }
}

/// The changes of objects for a person.
pub(crate) fn objects(changes: &[ObjectPlan], paint: Paint) -> String {
    let mut text = String::new();
    for change in changes {
        of_object(&mut text, change, paint);
    }
    text
}

fn of_object(text: &mut String, object: &ObjectPlan, paint: Paint) {
    let (sign, tone, words) = match object.act {
        ObjectAct::Create => ("+", Tone::Good, ""),
        ObjectAct::Change => ("~", Tone::Waiting, ""),
        ObjectAct::Replace => ("±", Tone::Bad, "deleted and made anew"),
        ObjectAct::Delete => ("-", Tone::Bad, ""),
        ObjectAct::Leave => ("·", Tone::Faint, "not rendered any more, and kept"),
        ObjectAct::Refused => ("!", Tone::Bad, "refused by the API server"),
        ObjectAct::Unserved => ("!", Tone::Bad, "its kind is not served when its turn comes"),
        ObjectAct::NoNamespace => ("!", Tone::Bad, "its namespace does not exist when its turn comes"),
    };
    let namespace = object
        .namespace
        .as_ref()
        .map(|namespace| format!("{namespace}/"))
        .unwrap_or_default();
    let title = format!("{sign} {} {namespace}{}", object.kind, object.name);
    let notes: Vec<&str> = [words, &object.reason]
        .into_iter()
        .filter(|note| !note.is_empty())
        .collect();
    let notes = if notes.is_empty() {
        String::new()
    } else {
        format!(" ({})", notes.join(": "))
    };
    let _ = writeln!(text, "     {}{notes}", paint.paint(tone, &title));
    for field in object.fields.iter().take(MOST_FIELDS) {
        let _ = writeln!(text, "         {}", of_field(field, paint));
    }
    left_out(text, "         ", object.fields.len());
}

fn fields(text: &mut String, title: &str, fields: &[Field], paint: Paint) {
    for (at, field) in fields.iter().take(MOST_FIELDS).enumerate() {
        let title = if at == 0 { title } else { "" };
        let _ = writeln!(text, "   {title:<8} {}", of_field(field, paint));
    }
    left_out(text, "            ", fields.len());
}

fn left_out(text: &mut String, indent: &str, number: usize) {
    if number > MOST_FIELDS {
        let _ = writeln!(
            text,
            "{indent}and {} more fields: -o json shows all",
            number - MOST_FIELDS
        );
    }
}

fn of_field(field: &Field, paint: Paint) -> String {
    let path = if field.path.is_empty() { "all" } else { &field.path };
    match (&field.before, &field.after) {
        (Some(before), Some(after)) if before == after => format!("{path}: changes, and is not shown"),
        (Some(before), Some(after)) => {
            let (before, after) = (
                paint.paint(Tone::Bad, &value(before)),
                paint.paint(Tone::Good, &value(after)),
            );
            format!("{path}: {before} → {after}")
        }
        (None, Some(after)) => format!("{path}: {}", paint.paint(Tone::Good, &format!("+ {}", value(after)))),
        (Some(before), None) => format!("{path}: {}", paint.paint(Tone::Bad, &format!("- {}", value(before)))),
        (None, None) => path.to_owned(),
    }
}

/// The value in one line. Characters that would steer a terminal are written as escapes.
fn value(value: &Value) -> String {
    let text = match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    };
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text,
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_control) && text.trim() == text && text.parse::<f64>().is_err()
}

fn list(text: &mut String, title: &str, entries: &[Refused], paint: Paint) {
    if entries.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}", paint.paint(Tone::Bad, title));
    for entry in entries {
        let reason = entry.reason.replace('\n', "\n      ");
        let _ = writeln!(text, "   {}: {reason}", entry.name);
    }
    text.push('\n');
}
