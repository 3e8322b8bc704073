//! The contents of a record in helm's format: base64 of gzip of JSON.
//!
//! Must never lose a field that the operator does not know.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};

use addon_core::release::Status;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::value::{RawValue, to_raw_value};

/// Far more than fits into a Secret. The limit keeps a crafted record from filling the memory.
const CONTENT_LIMIT: u64 = 64 << 20;

/// The fields of a release as unparsed JSON, because values may be nested deeper than the operator's parser allows.
pub type Content = BTreeMap<String, Box<RawValue>>;

/// A text field of the release's contents; empty if the field is absent.
pub(super) fn text(content: &Content, field: &str) -> String {
    let raw = content.get(field).map(|raw| serde_json::from_str(raw.get()));
    raw.and_then(Result::ok).unwrap_or_default()
}

/// The map in a field of the release's contents; empty if the field is absent.
pub(super) fn fields(content: &Content, field: &str) -> Content {
    let raw = content.get(field).map(|raw| serde_json::from_str(raw.get()));
    raw.and_then(Result::ok).unwrap_or_default()
}

pub(super) fn note_failure(content: &mut Content, left: Status) -> io::Result<()> {
    let mut info = fields(content, "info");
    let description = format!("helm was ended while this was {left}");
    for (field, text) in [("status", Status::Failed.word()), ("description", &description)] {
        info.insert(field.to_owned(), to_raw_value(text)?);
    }
    content.insert("info".to_owned(), to_raw_value(&info)?);
    Ok(())
}

/// Parses helm's format: base64 of gzip of JSON.
pub fn decode(bytes: &[u8]) -> io::Result<Content> {
    let packed = STANDARD.decode(bytes).map_err(io::Error::other)?;
    let mut text = Vec::new();
    if packed.starts_with(&[0x1f, 0x8b]) {
        GzDecoder::new(packed.as_slice())
            .take(CONTENT_LIMIT)
            .read_to_end(&mut text)?;
    } else {
        text = packed;
    }
    Ok(serde_json::from_slice(&text)?)
}

pub(super) fn encode(content: &Content) -> io::Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&serde_json::to_vec(content)?)?;
    Ok(STANDARD.encode(gzip.finish()?).into_bytes())
}
