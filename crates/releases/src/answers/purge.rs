//! The held removals: their list, and a person's confirmation.
//!
//! A removal must never count as confirmed unless it was named, or was included in the confirmed number.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use addon_core::operator::event::Event;
use addon_core::operator::query::{HeldBy, HeldRemoval, StatusQuery};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use listeners::reply::{self, Format, Reply, bad_request, text};
use listeners::{Loop, Unanswered};
use thiserror::Error;

/// Why nothing is removed.
#[derive(Debug, PartialEq, Eq, Error)]
enum Unconfirmed {
    #[error("no removal is held")]
    NothingHeld,
    #[error("{held} removals are held, not {said}: {names}")]
    OtherNumber { held: usize, said: usize, names: String },
    #[error("the removal of '{name}' is not held; held are: {names}")]
    NotHeld { name: String, names: String },
    #[error(
        "the removal of '{name}' waits for the end of a trial, which no word of a person brings about; confirmed can be: {names}"
    )]
    OnTrial { name: String, names: String },
}

/// Confirms held removals. `said` is the number of held removals, or the names of the removals to confirm.
/// Nothing is confirmed if `said` does not match the held removals.
pub async fn confirm(doors: &Loop, said: &str) -> Response {
    match confirmed(doors, said).await {
        Ok(Ok(names)) => text(
            StatusCode::OK,
            format!("confirmed, and removed from now on: {}\n", list(&names)),
        )
        .into_response(),
        Ok(Err(unconfirmed)) => bad_request(unconfirmed),
        Err(unanswered) => unanswered.into_response(),
    }
}

/// The list of the held removals.
pub async fn held(doors: &Loop, format: Format) -> Result<Reply, Unanswered> {
    let held = listeners::ask(doors, StatusQuery).await?.held;
    Ok(reply::shown(format, &held, || shown(&held)))
}

async fn confirmed(doors: &Loop, said: &str) -> Result<Result<BTreeSet<String>, Unconfirmed>, Unanswered> {
    let held = listeners::ask(doors, StatusQuery).await?.held;
    let names = match meant(said, &held) {
        Ok(names) => names,
        Err(unconfirmed) => return Ok(Err(unconfirmed)),
    };
    doors.post(Event::PurgeConfirmed(names.clone()))?;
    Ok(Ok(names))
}

/// The held removals that a confirmation is about.
fn meant(said: &str, held: &[HeldRemoval]) -> Result<BTreeSet<String>, Unconfirmed> {
    let of = |by: HeldBy| {
        held.iter()
            .filter(move |held| held.by == by)
            .map(|held| held.release.clone())
    };
    let (all, on_trial): (BTreeSet<String>, BTreeSet<String>) =
        (of(HeldBy::Brake).collect(), of(HeldBy::Trial).collect());
    let names = if all.is_empty() { "none".to_owned() } else { list(&all) };
    if let Some(name) = said.split(',').map(str::trim).find(|name| on_trial.contains(*name)) {
        let name = name.to_owned();
        return Err(Unconfirmed::OnTrial { name, names });
    }
    if all.is_empty() {
        return Err(Unconfirmed::NothingHeld);
    }
    if let Ok(said) = said.trim().parse::<usize>() {
        let held = all.len();
        return if said == held {
            Ok(all)
        } else {
            Err(Unconfirmed::OtherNumber { held, said, names })
        };
    }
    let wanted: BTreeSet<String> = said.split(',').map(|name| name.trim().to_owned()).collect();
    match wanted.iter().find(|name| !all.contains(*name)) {
        None => Ok(wanted),
        Some(name) => Err(Unconfirmed::NotHeld {
            name: name.clone(),
            names,
        }),
    }
}

/// The held removals and the remedy, for people.
fn shown(held: &[HeldRemoval]) -> String {
    if held.is_empty() {
        return "No removal is held.\n".to_owned();
    }
    let mut text = String::new();
    for HeldRemoval {
        release,
        sign,
        reason,
        by: _,
    } in held
    {
        let _ = writeln!(text, "{release}: {sign}; held: {reason}");
    }
    let number = held.iter().filter(|held| held.by == HeldBy::Brake).count();
    if number < held.len() {
        text += "\nWhat a trial holds goes on by itself when that is passed, and cannot be confirmed.\n";
    }
    if number == 0 {
        return text;
    }
    text + &format!(
        "\n{number} removals are held until what named these modules is back. `module purge --confirm {number}` removes them \
         all, `module purge --confirm NAME,NAME` some of them.\n"
    )
}

fn list(names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(names: &[&str]) -> Vec<HeldRemoval> {
        let held = names.iter().map(|name| HeldRemoval {
            release: (*name).to_owned(),
            sign: "no source names its module any more",
            reason: "3 of our 3 releases would go".to_owned(),
            by: HeldBy::Brake,
        });
        held.collect()
    }

    #[test]
    fn only_what_is_held_can_be_confirmed_by_number_or_by_name() {
        let three = held(&["a", "b", "c"]);
        let rows: [(&str, Result<&str, &str>); 8] = [
            ("3", Ok("a,b,c")),
            (" 3 ", Ok("a,b,c")),
            ("c, a", Ok("a,c")),
            ("2", Err("3 removals are held, not 2: a,b,c")),
            ("a,d", Err("the removal of 'd' is not held; held are: a,b,c")),
            ("", Err("the removal of '' is not held; held are: a,b,c")),
            ("-3", Err("the removal of '-3' is not held; held are: a,b,c")),
            ("a,", Err("the removal of '' is not held; held are: a,b,c")),
        ];
        for (said, expected) in rows {
            let found = meant(said, &three)
                .map(|names| list(&names))
                .map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{said:?}");
        }
        for said in ["0", "a"] {
            assert_eq!(meant(said, &[]), Err(Unconfirmed::NothingHeld));
        }
    }

    #[test]
    fn what_a_trial_holds_cannot_be_confirmed_and_is_not_counted() {
        let mut held = held(&["a", "b"]);
        held[1].by = HeldBy::Trial;
        assert_eq!(meant("1", &held).map(|names| list(&names)), Ok("a".to_owned()));
        let refused = meant("a,b", &held).unwrap_err().to_string();
        assert!(
            refused.starts_with("the removal of 'b' waits for the end of a trial"),
            "{refused}"
        );
        let told = shown(&held);
        assert!(
            told.contains("--confirm 1`") && told.contains("cannot be confirmed"),
            "{told}"
        );
        held.remove(0);
        assert_eq!(meant("1", &held), Err(Unconfirmed::NothingHeld));
        assert!(!shown(&held).contains("--confirm"));
    }

    #[test]
    fn what_is_held_is_shown_with_the_way_to_confirm_it() {
        let told = shown(&held(&["a", "b"]));
        let line = "a: no source names its module any more; held: 3 of our 3 releases would go\n";
        assert!(told.starts_with(line) && told.contains("--confirm 2`"), "{told}");
        assert_eq!(shown(&[]), "No removal is held.\n");
    }
}
