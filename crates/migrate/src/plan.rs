//! Names and numbers of modules: each release gets a module, and the modules get an order.
//!
//! Never gives a name that a release beside the operator has already, except to that release.

use std::collections::{BTreeMap, BTreeSet};

use names::ModuleName;

use crate::outline::{Left, Outline, Place};

/// The number of the first module.
const FIRST: u32 = 100;
/// The distance between two numbers, which leaves room for modules between them.
const STEP: u32 = 10;
/// The largest number of three digits.
const LAST: u32 = 999;

/// How the operator becomes the owner of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The release stays, and its record gets the operator's label.
    Mark,
    /// A new release of the operator takes over the objects.
    Install,
}

impl Way {
    /// The events of helm hooks that run.
    pub fn events(self) -> &'static [&'static str] {
        match self {
            Self::Mark => &["pre-upgrade", "post-upgrade"],
            Self::Install => &["pre-install", "post-install"],
        }
    }
}

/// A release with the module that takes it over.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    pub module: ModuleName,
    pub order: u32,
    pub way: Way,
    pub outline: Outline,
}

impl Planned {
    /// The name of the module's directory.
    pub fn dir(&self) -> String {
        format!("{:03}-{}", self.order, self.module)
    }
}

/// Gives each release a module. `operator` is the operator's namespace, and `taken` has the releases in it.
pub fn plan(outlines: Vec<Outline>, operator: &str, taken: &BTreeSet<String>) -> (Vec<Planned>, Vec<Left>) {
    let (outlines, mut left) = ordered(outlines);
    // A release that stays keeps its name, so the others get theirs later.
    let mut used = taken.clone();
    let count = u32::try_from(outlines.len()).unwrap_or(LAST);
    let step = if count.saturating_mul(STEP) > LAST - FIRST {
        1
    } else {
        STEP
    };
    let (mut planned, mut order) = (Vec::new(), FIRST);
    for outline in outlines {
        if order > LAST {
            let reason = "no number of three digits is left for its module: hand over these first, and run this again";
            left.push(Left::new(&outline.place, reason));
            continue;
        }
        let Some((module, way)) = name(&outline, operator, &mut used) else {
            left.push(Left::new(&outline.place, no_name(&outline)));
            continue;
        };
        planned.push(Planned {
            module,
            order,
            way,
            outline,
        });
        order = order.saturating_add(step);
    }
    (planned, left)
}

fn name(outline: &Outline, operator: &str, used: &mut BTreeSet<String>) -> Option<(ModuleName, Way)> {
    let release = &outline.release;
    let stays = outline
        .record
        .as_ref()
        .is_some_and(|(stored, _)| stored.namespace == operator && outline.namespace == operator);
    if stays && let Some(module) = valid(release) {
        return Some((module, Way::Mark));
    }
    let (namespace, place) = (&outline.namespace, &outline.place);
    let tried = [
        release.clone(),
        place.name.clone(),
        format!("{release}-{namespace}"),
        format!("{release}-{namespace}-{}", place.name),
    ];
    for text in tried {
        let text = restorable(&text);
        if let Some(module) = valid(&text)
            && used.insert(text)
        {
            return Some((module, Way::Install));
        }
    }
    None
}

/// The name without dashes and dots that a key of values cannot express.
fn restorable(text: &str) -> String {
    match ModuleName::parse(text) {
        Err(names::NameError::NotRestorable { proposal, .. }) => proposal,
        Ok(_) | Err(_) => text.replace('.', "-"),
    }
}

/// The name, if a module can have it and helm takes its key for the alias of a chart.
fn valid(text: &str) -> Option<ModuleName> {
    /// The longest name of a release.
    const LIMIT: usize = 53;
    let name = ModuleName::parse(text).ok()?;
    let is_alias = name.values_key().bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_alias && text.len() <= LIMIT && text.starts_with(|c: char| c.is_ascii_lowercase())).then_some(name)
}

fn no_name(outline: &Outline) -> String {
    let release = &outline.release;
    match ModuleName::parse(release) {
        Err(error) => format!("no module can have the name of its release: {error}"),
        Ok(_) => format!("the name '{release}' is taken by another release in the operator's namespace"),
    }
}

/// The releases in an order in which each comes after those that it needs. Those in a circle are left.
fn ordered(mut outlines: Vec<Outline>) -> (Vec<Outline>, Vec<Left>) {
    outlines.sort_by(|one, other| {
        let key = |outline: &Outline| (outline.wave, outline.release.clone(), outline.place.clone());
        key(one).cmp(&key(other))
    });
    let known: BTreeSet<Place> = outlines.iter().map(|outline| outline.place.clone()).collect();
    let mut waiting: BTreeMap<usize, Outline> = outlines.into_iter().enumerate().collect();
    let (mut ordered, mut before) = (Vec::new(), BTreeSet::new());
    loop {
        let is_ready = |outline: &Outline| {
            let mut needs = outline.needs.iter().filter(|need| known.contains(*need));
            needs.all(|need| before.contains(need))
        };
        let ready = waiting.iter().find(|(_, outline)| is_ready(outline));
        let Some(at) = ready.map(|(at, _)| *at) else { break };
        let Some(outline) = waiting.remove(&at) else { break };
        before.insert(outline.place.clone());
        ordered.push(outline);
    }
    let circle = waiting.into_values();
    let left = circle.map(|outline| Left::new(&outline.place, "its spec.dependsOn leads in a circle"));
    (ordered, left.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outline::{Facts, Record};

    fn outline(place: &str, release: &str, namespace: &str, stored: Option<&str>) -> Outline {
        let (within, name) = place.split_once('/').unwrap();
        let record = Record {
            revision: 1,
            status: "deployed".to_owned(),
            secret: "s".to_owned(),
            is_ours: false,
        };
        Outline {
            place: Place::new(within, name),
            release: release.to_owned(),
            namespace: namespace.to_owned(),
            record: stored.map(|stored| (Place::new(stored, release), record)),
            needs: BTreeSet::new(),
            wave: 0,
            facts: Facts::Helm,
            remarks: Vec::new(),
        }
    }

    fn dirs(outlines: Vec<Outline>, taken: &[&str]) -> (Vec<(String, Way)>, Vec<String>) {
        let taken = taken.iter().map(|name| (*name).to_owned()).collect();
        let (planned, left) = plan(outlines, "op", &taken);
        let dirs = planned.iter().map(|planned| (planned.dir(), planned.way)).collect();
        (dirs, left.into_iter().map(|left| left.reason).collect())
    }

    #[test]
    fn a_release_beside_the_operator_stays_and_others_are_installed() {
        let (dirs, left) = dirs(
            vec![
                outline("op/web", "web", "op", Some("op")),
                outline("shop/web", "web", "shop", Some("shop")),
                outline("shop/app-2", "app-2", "shop", Some("shop")),
                outline("op/far", "far", "other", Some("op")),
            ],
            &["web", "far"],
        );
        let rows = [
            ("100-app2", Way::Install),
            // Its record lies beside the operator under that name, and its objects do not.
            ("110-far-other", Way::Install),
            ("120-web", Way::Mark),
            ("130-web-shop", Way::Install),
        ];
        assert_eq!(dirs, rows.map(|(dir, way)| (dir.to_owned(), way)));
        assert_eq!(left, [""; 0]);
    }

    #[test]
    fn names_that_no_module_can_have_are_refused_or_changed() {
        let (dirs, left) = dirs(
            vec![
                outline("a/global", "global", "a", None),
                outline("a/a.b", "a.b", "a", None),
                outline("a/9lives", "9lives", "a", None),
            ],
            &[],
        );
        let dirs: Vec<&str> = dirs.iter().map(|(dir, _)| dir.as_str()).collect();
        assert_eq!(dirs, ["100-a-b", "110-global-a"]);
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn needs_and_waves_come_first_and_circles_are_left() {
        let place = |name: &str| Place::new("a", name);
        let mut all: Vec<Outline> = ["one", "two", "three", "x", "y"]
            .iter()
            .map(|name| outline(&format!("a/{name}"), name, "a", None))
            .collect();
        all[0].needs = [place("two"), place("elsewhere")].into();
        all[2].wave = -1;
        all[3].needs = [place("y")].into();
        all[4].needs = [place("x")].into();
        let (dirs, left) = dirs(all, &[]);
        let dirs: Vec<&str> = dirs.iter().map(|(dir, _)| dir.as_str()).collect();
        assert_eq!(dirs, ["100-three", "110-two", "120-one"]);
        assert_eq!(left.len(), 2);
    }

    #[test]
    fn many_modules_have_numbers_of_three_digits() {
        let all = (0..400).map(|at| outline(&format!("a/r{at}"), &format!("r{at}"), "a", None));
        let (dirs, _) = dirs(all.collect(), &[]);
        assert!(dirs.last().unwrap().0.starts_with("499-"), "{:?}", dirs.last());
        let all = (0..901).map(|at| outline(&format!("a/r{at}"), &format!("r{at}"), "a", None));
        let (dirs, left) = self::dirs(all.collect(), &[]);
        assert!(dirs.last().unwrap().0.starts_with("999-"), "{:?}", dirs.last());
        assert_eq!(left.len(), 1);
    }
}
