//! The objects of a module's release with their health, for people.

use std::fmt::Write as _;

use command::paint::{Paint, Tone};
use command::socket::{Socket, encode};
use serde::Deserialize;

/// The largest number of objects in a tree. The others are counted.
const MOST: usize = 50;

#[derive(Debug, Deserialize)]
struct Answer {
    /// Earlier versions do not tell them.
    #[serde(default)]
    objects: Vec<Object>,
}

#[derive(Debug, Deserialize)]
struct Object {
    kind: String,
    namespace: String,
    name: String,
    health: String,
    sentence: String,
}

/// The objects, those first that do not do their work. Empty if none are known.
pub(super) fn tree(socket: &Socket, module: &str, paint: Paint) -> String {
    let answer = socket.read::<Answer>(&format!("/module/{}/status.json", encode(module)));
    answer.map(|answer| shown(answer.objects, paint)).unwrap_or_default()
}

/// The same for the command that prints nothing else.
pub(super) fn whole(socket: &Socket, module: &str, paint: Paint) -> String {
    let tree = tree(socket, module, paint);
    if tree.is_empty() {
        return format!("no object of module '{module}' is known\n");
    }
    tree
}

fn shown(mut objects: Vec<Object>, paint: Paint) -> String {
    if objects.is_empty() {
        return String::new();
    }
    objects.sort_by_cached_key(|object| (rank(object), object.kind.clone(), object.name.clone()));
    let more = objects.len().saturating_sub(MOST);
    let mut text = "objects:\n".to_owned();
    for object in objects.iter().take(MOST) {
        let Object {
            kind,
            namespace,
            name,
            health,
            sentence,
        } = object;
        let place = if namespace.is_empty() {
            String::new()
        } else {
            format!("{namespace}/")
        };
        let state = paint.paint(tone(health), health);
        let why = if sentence.is_empty() {
            String::new()
        } else {
            format!(": {sentence}")
        };
        let _ = writeln!(text, "  {kind} {place}{name}  {state}{why}");
    }
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
    text
}

fn rank(object: &Object) -> u8 {
    match object.health.as_str() {
        "Failed" => 0,
        "RollingOut" => 1,
        "Unknown" => 2,
        "Healthy" => 3,
        _ => 4,
    }
}

fn tone(health: &str) -> Tone {
    match health {
        "Failed" => Tone::Bad,
        "RollingOut" => Tone::Waiting,
        "Healthy" => Tone::Good,
        _ => Tone::Faint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, health: &str, sentence: &str) -> Object {
        let text = str::to_owned;
        Object {
            kind: text("Deployment"),
            namespace: if name == "far" { text("ns") } else { String::new() },
            name: text(name),
            health: text(health),
            sentence: text(sentence),
        }
    }

    #[test]
    fn objects_that_do_not_work_come_first() {
        let objects = vec![
            object("far", "Healthy", ""),
            object("web", "RollingOut", "0 of 1 pods are ready"),
            object("job", "Failed", "it has failed"),
        ];
        assert_eq!(
            shown(objects, Paint::Plain),
            "objects:\n  Deployment job  Failed: it has failed\n  Deployment web  RollingOut: 0 of 1 pods are ready\n  \
             Deployment ns/far  Healthy\n"
        );
        assert_eq!(shown(Vec::new(), Paint::Plain), "");
        let many = (0..60)
            .map(|number| object(&number.to_string(), "Healthy", ""))
            .collect();
        assert!(shown(many, Paint::Plain).ends_with("  and 10 more\n"));
    }
}
