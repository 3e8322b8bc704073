//! The header `Accept` of a scraper. It says how names have to be escaped.
//!
//! The only format here is the text format of version 0.0.4, so clauses for other formats matter only for their escaping.

use super::escape::Escaping;

/// One clause of the header: a media type with parameters.
struct Clause<'a> {
    media: (&'a str, &'a str),
    version: &'a str,
    escaping: Option<Escaping>,
    quality: f32,
}

/// The escaping that the header asks for. Clauses are read from the highest `q` on, up to the first clause for plain
/// text. As in Prometheus' library, the last escaping among these clauses counts.
pub fn escaping(accept: &str) -> Escaping {
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    let mut escaping = Escaping::default();
    for clause in clauses {
        escaping = clause.escaping.unwrap_or(escaping);
        if clause.media == ("text", "plain") && matches!(clause.version, "" | "0.0.4") {
            break;
        }
    }
    escaping
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';');
        let media = parts.next().unwrap_or_default();
        let media = match media.split_once('/') {
            Some((_, below)) if below.contains('/') || below.is_empty() => return None,
            Some((kind, below)) => (trim(kind), trim(below)),
            None if trim(media) == "*" => ("*", "*"),
            None => return None,
        };
        let mut clause = Self {
            media,
            version: "",
            escaping: None,
            quality: 1.0,
        };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match trim(name) {
                _ if value.is_empty() || value.contains('=') => {}
                "q" => clause.quality = value.parse().unwrap_or(0.0),
                "version" => clause.version = trim(value),
                "escaping" => clause.escaping = Escaping::named(trim(value)),
                _ => {}
            }
        }
        Some(clause)
    }
}

fn trim(text: &str) -> &str {
    text.trim_matches(' ')
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_header_line_is_read_as_prometheus_library_reads_it() {
        for line in include_str!("../../tests/oracles/metric_accept.jsonl").lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let accept = row["accept"].as_str().unwrap();
            let kind = format!(
                "text/plain; version=0.0.4; charset=utf-8; escaping={}",
                escaping(accept).word()
            );
            assert_eq!(kind, row["type"].as_str().unwrap(), "{accept}");
        }
    }
}
