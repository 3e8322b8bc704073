//! Prints moments as `strftime` does.

use super::calendar::Moment;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// Prints a moment. Text that is no directive is copied.
pub(super) fn write(moment: &Moment, format: &str) -> String {
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        let mut padding = None;
        let mut next = chars.next();
        if let Some(flag @ ('-' | '_' | '0' | '^' | '#')) = next {
            padding = Some(flag);
            next = chars.next();
        }
        let Some(directive) = next else {
            out.push('%');
            break;
        };
        match piece(moment, directive, padding) {
            Some(text) if padding == Some('^') => out.push_str(&text.to_uppercase()),
            Some(text) => out.push_str(&text),
            None => {
                out.push('%');
                out.push(directive);
            }
        }
    }
    out
}

fn number(value: i64, width: usize, fill: char, padding: Option<char>) -> String {
    match padding {
        Some('-') => value.to_string(),
        Some('_') => format!("{value:>width$}"),
        Some('0') => format!("{value:0>width$}"),
        _ if fill == ' ' => format!("{value:>width$}"),
        _ => format!("{value:0>width$}"),
    }
}

fn piece(moment: &Moment, directive: char, padding: Option<char>) -> Option<String> {
    let zero = |value: i64, width: usize| number(value, width, '0', padding);
    let blank = |value: i64, width: usize| number(value, width, ' ', padding);
    let hour = i64::from(moment.hour);
    let twelve = (hour + 11) % 12 + 1;
    let month = MONTHS[moment.month.saturating_sub(1) as usize % 12];
    let day = DAYS[usize::try_from(moment.weekday()).unwrap_or(0) % 7];
    Some(match directive {
        'Y' => zero(moment.year, 4),
        'C' => zero(moment.year.div_euclid(100), 2),
        'y' => zero(moment.year.rem_euclid(100), 2),
        'm' => zero(i64::from(moment.month), 2),
        'B' => month.to_owned(),
        'b' | 'h' => month[..3].to_owned(),
        'd' => zero(i64::from(moment.day), 2),
        'e' => blank(i64::from(moment.day), 2),
        'j' => zero(moment.day_of_year(), 3),
        'A' => day.to_owned(),
        'a' => day[..3].to_owned(),
        'u' => ((moment.weekday() + 6) % 7 + 1).to_string(),
        'w' => moment.weekday().to_string(),
        'G' => zero(moment.iso_week().0, 4),
        'g' => zero(moment.iso_week().0.rem_euclid(100), 2),
        'V' => zero(moment.iso_week().1, 2),
        'U' => zero((moment.day_of_year() + 6 - moment.weekday()) / 7, 2),
        'W' => zero((moment.day_of_year() + 6 - (moment.weekday() + 6) % 7) / 7, 2),
        'H' => zero(hour, 2),
        'k' => blank(hour, 2),
        'I' => zero(twelve, 2),
        'l' => blank(twelve, 2),
        'p' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
        'P' => if hour < 12 { "am" } else { "pm" }.to_owned(),
        'M' => zero(i64::from(moment.minute), 2),
        'S' => zero(i64::from(moment.second), 2),
        'f' => format!("{:06}", moment.nanosecond / 1000),
        'N' => format!("{:09}", moment.nanosecond),
        's' => moment.whole_seconds().to_string(),
        'Z' => "UTC".to_owned(),
        'z' => "+0000".to_owned(),
        'c' => write(moment, "%a %b %e %H:%M:%S %Y"),
        'v' => write(moment, "%e-%b-%Y"),
        'D' | 'x' => write(moment, "%m/%d/%y"),
        'F' => write(moment, "%Y-%m-%d"),
        'T' | 'X' => write(moment, "%H:%M:%S"),
        'R' => write(moment, "%H:%M"),
        'r' => write(moment, "%I:%M:%S %p"),
        '+' => write(moment, "%a %b %e %H:%M:%S %Z %Y"),
        'n' => "\n".to_owned(),
        't' => "\t".to_owned(),
        '%' => "%".to_owned(),
        _ => return None,
    })
}
