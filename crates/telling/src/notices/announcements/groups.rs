//! News about many modules in one announcement, so that the first start of a large cluster does not write an Event for
//! each of them. Must never leave out a module.

use std::collections::BTreeSet;

use names::ModuleName;

use super::{Announcement, NOTE_LIMIT, Weight, about, of_module};

const READY: &str = "ready";

/// The modules whose releases were installed or upgraded: as many in one announcement as a note holds.
pub(super) fn ready(modules: &BTreeSet<ModuleName>) -> Vec<Announcement> {
    if let Some(module) = modules.first().filter(|_| modules.len() == 1) {
        let note = format!("module '{module}' is ready, its release is installed or upgraded");
        return vec![of_module(module, "ModuleReady", "Run", Weight::Normal, note)];
    }
    let mut notes: Vec<String> = Vec::new();
    for module in modules {
        match notes.last_mut() {
            Some(note) if note.len() + ", ".len() + module.as_str().len() <= NOTE_LIMIT => {
                note.push_str(", ");
                note.push_str(module.as_str());
            }
            _ => notes.push(format!(
                "modules are ready, their releases are installed or upgraded: {module}"
            )),
        }
    }
    // Each announcement has its own subject, because an announcement replaces a waiting one with the same subject.
    let groups = notes.into_iter().enumerate();
    groups
        .map(|(number, note)| about(&format!("{READY} {number}"), "ModuleReady", "Run", Weight::Normal, note))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_is_named_once_in_as_few_notes_as_hold_them() {
        let name =
            |number: u32| ModuleName::parse(&format!("module-{}", "abcdefghij".repeat(3) + &letters(number))).unwrap();
        for (count, notes) in [(0, 0), (1, 1), (2, 1), (20, 1), (200, 9)] {
            let modules: BTreeSet<ModuleName> = (0..count).map(name).collect();
            let announcements = ready(&modules);
            assert_eq!(announcements.len(), notes, "{count}");
            let said = announcements
                .iter()
                .map(|one| one.note.as_str())
                .collect::<Vec<_>>()
                .join("\n");
            assert!(announcements.iter().all(|one| one.note.len() <= NOTE_LIMIT));
            assert!(
                modules.iter().all(|module| said.matches(module.as_str()).count() == 1),
                "{said}"
            );
            let subjects: BTreeSet<&str> = announcements.iter().map(|one| one.subject.as_str()).collect();
            assert_eq!(subjects.len(), notes);
        }
    }

    fn letters(number: u32) -> String {
        let letter = |place: u32| char::from_u32(97 + number / 26_u32.pow(place) % 26).unwrap();
        [letter(1), letter(0)].iter().collect()
    }
}
