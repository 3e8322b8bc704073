//! Parses PEM blocks line by line. Must never skip a block silently, as other parsers do with invalid ones.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

/// Why a block is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BrokenPem {
    /// The text ends, or another block begins, before the block has its end.
    #[error("its '-----END {0}-----' is missing")]
    NoEnd(String),
    /// A line of dashes is neither the beginning nor the end of a block.
    #[error("line {0} of the text is in the way: it neither begins a block nor ends one")]
    Dashes(usize),
    /// The contents are not base64.
    #[error("its content is not base64, or is cut")]
    Base64,
}

pub(super) struct Block {
    pub(super) label: String,
    pub(super) content: Result<Vec<u8>, BrokenPem>,
}

/// All blocks of a text in their order, including invalid ones. Text outside of them is a comment.
pub(super) fn blocks(text: &str) -> Vec<Result<Block, BrokenPem>> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        let begins = boundary(line, "BEGIN");
        let ends = boundary(line, "END");
        match (open.take(), begins, ends) {
            (None, Some(label), _) => open = Some((label, String::new())),
            (Some((label, _)), Some(next), _) => {
                blocks.push(Err(BrokenPem::NoEnd(label.to_owned())));
                open = Some((next, String::new()));
            }
            (Some((label, body)), None, Some(end)) if label == end => {
                let content = STANDARD.decode(&body).map_err(|_| BrokenPem::Base64);
                let label = label.to_owned();
                blocks.push(Ok(Block { label, content }));
            }
            (_, None, _) if line.starts_with("-----") => blocks.push(Err(BrokenPem::Dashes(number))),
            (Some((label, mut body)), None, _) => {
                body.push_str(line);
                open = Some((label, body));
            }
            (None, None, _) => {}
        }
    }
    blocks.extend(open.map(|(label, _)| Err(BrokenPem::NoEnd(label.to_owned()))));
    blocks
}

fn boundary<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let label = line.strip_prefix("-----")?.strip_prefix(word)?.strip_prefix(' ')?;
    label.strip_suffix("-----")
}
