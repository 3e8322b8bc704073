//! Times: seconds since 1970 and their eight numbers, always in UTC, and texts as by `strftime`.

mod calendar;
mod format;
mod parse;

use super::{Row, binary, unary, values};
use crate::value::wording as say;
use crate::value::{Res, Val, fault, preview};
use calendar::Moment;

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("gmtime", values(0), |cv| {
            unary(cv, |input| broken_down("gmtime", input))
        }),
        ("localtime", values(0), |cv| {
            unary(cv, |input| broken_down("localtime", input))
        }),
        ("mktime", values(0), |cv| unary(cv, |input| mktime(input))),
        ("strftime", values(1), |cv| {
            binary(cv, |input, format| strftime("strftime", input, format))
        }),
        ("strflocaltime", values(1), |cv| {
            binary(cv, |input, format| strftime("strflocaltime", input, format))
        }),
        ("strptime", values(1), |cv| {
            binary(cv, |input, format| strptime(input, format))
        }),
    ]
}

fn broken_down<'a>(name: &str, input: &Val<'a>) -> Res<'a> {
    let seconds = input.as_num().ok_or_else(|| say::plain(name, input))?.float();
    numbers(Moment::from_seconds(seconds))
}

/// The array of a moment: year, month from 0, day, hour, minute, second, weekday from 0, day of the year from 0.
fn numbers<'a>(moment: Moment) -> Res<'a> {
    let second = f64::from(moment.second) + f64::from(moment.nanosecond) / 1e9;
    Val::array(vec![
        Val::int(moment.year),
        Val::int(i64::from(moment.month) - 1),
        Val::int(i64::from(moment.day)),
        Val::int(i64::from(moment.hour)),
        Val::int(i64::from(moment.minute)),
        Val::float(second),
        Val::int(moment.weekday()),
        Val::int(moment.day_of_year() - 1),
    ])
}

/// The moment of eight numbers. Missing numbers are zero. Numbers that are too large carry over.
fn moment<'a>(input: &Val<'a>) -> Res<'a, Option<Moment>> {
    let Some(list) = input.as_list() else { return Ok(None) };
    let mut parts = [0.0; 6];
    for (index, item) in list.iter().enumerate().take(8) {
        let number = item.as_num().ok_or_else(|| fault("expected an array of 8 numbers"))?;
        if let Some(part) = parts.get_mut(index) {
            *part = number.float();
        }
    }
    Ok(Some(Moment::from_parts(parts)))
}

fn mktime<'a>(input: &Val<'a>) -> Res<'a> {
    match moment(input) {
        Ok(Some(moment)) => Ok(Val::float(moment.seconds())),
        Ok(None) => Err(say::plain("mktime", input)),
        Err(why) => Err(say::because("mktime", input, &why.to_string())),
    }
}

fn strftime<'a>(name: &str, input: &Val<'a>, format: &Val<'a>) -> Res<'a> {
    let input = if input.as_num().is_some() {
        broken_down(name, input)?
    } else {
        input.clone()
    };
    let (Some(_), Some(pattern)) = (input.as_list(), format.as_str()) else {
        return Err(say::with(name, &input, format));
    };
    match moment(&input) {
        Ok(moment) => Val::string(format::write(
            &moment.unwrap_or_else(|| Moment::from_seconds(0.0)),
            pattern,
        )),
        Err(why) => Err(say::because(name, &input, &why.to_string())),
    }
}

fn strptime<'a>(input: &Val<'a>, format: &Val<'a>) -> Res<'a> {
    let (Some(text), Some(pattern)) = (input.as_str(), format.as_str()) else {
        return Err(say::with("strptime", input, format));
    };
    let moment = parse::read(text, pattern).map_err(|why| {
        let name = format!("strptime({})", preview(format));
        say::because(
            &name,
            input,
            &format!("failed to parse {text:?} with {pattern:?}: {why}"),
        )
    })?;
    numbers(moment)
}
