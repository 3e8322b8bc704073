//! The storage of the values that global hooks gave in their last good runs: compressed, within a limit.
//!
//! Values that find no room are left out, the largest first. At a start the operator waits for their hooks, as for
//! hooks that have never succeeded. Must never take the room of the last good sections.

use std::collections::BTreeMap;
use std::io::{self, Read as _};

use addon_core::values::Given;
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use names::HookName;

/// The limit of the compressed values. With the sections it is less than the 1 MiB of a Secret.
const ROOM: usize = 32 * 1024;
/// The limit of the unpacked values. Values that fit into `ROOM` when they are packed are smaller.
const UNPACKED: u64 = 64 << 20;

pub(super) type All = BTreeMap<HookName, Given>;

/// The values in their stored form.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stored {
    /// The compressed values; `None` if there are none.
    pub(super) packed: Option<Vec<u8>>,
    /// The hooks whose values found no room.
    pub(super) left_out: Vec<HookName>,
}

pub(super) fn store(mut given: All) -> io::Result<Stored> {
    let mut left_out = Vec::new();
    loop {
        if given.is_empty() {
            return Ok(Stored { packed: None, left_out });
        }
        let mut packed = Vec::new();
        GzEncoder::new(serde_json::to_vec(&given)?.as_slice(), Compression::default()).read_to_end(&mut packed)?;
        if packed.len() <= ROOM {
            return Ok(Stored {
                packed: Some(packed),
                left_out,
            });
        }
        let length = |given: &Given| serde_json::to_vec(given).map_or(0, |text| text.len());
        let largest = given.iter().max_by_key(|(_, given)| length(given));
        let Some(largest) = largest.map(|(hook, _)| hook.clone()) else {
            continue;
        };
        given.remove(&largest);
        left_out.push(largest);
    }
}

pub(super) fn unpack(packed: &[u8]) -> io::Result<All> {
    let mut text = Vec::new();
    GzDecoder::new(packed).take(UNPACKED).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use addon_core::values::patch::{Patch, PatchFile};
    use jiff::Timestamp;
    use names::Owner;
    use serde_json::json;

    use super::*;

    fn of(text: &str) -> Given {
        let patch = json!([{"op": "add", "path": "/global/text", "value": text}, {"op": "add", "path": "/oneEnabled", "value": true}]);
        let patch = Patch::parse(&patch.to_string(), PatchFile::Values).unwrap();
        let mut given = Given::nothing(Timestamp::UNIX_EPOCH);
        given.add(
            patch.accept(&Owner::Global).unwrap(),
            Timestamp::from_second(60).unwrap(),
        );
        given
    }

    fn noise(length: u64) -> String {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap())
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn values_are_read_as_they_were_stored() {
        let given: All = [(HookName::parse("a.sh").unwrap(), of("short"))].into();
        let stored = store(given.clone()).unwrap();
        assert_eq!(unpack(&stored.packed.unwrap()).unwrap(), given);
        assert_eq!(store(All::new()).unwrap(), Stored::default());
        assert!(unpack(b"no gzip").is_err());
    }

    #[test]
    fn the_largest_values_are_left_out_until_the_others_fit() {
        let [small, large, larger] = ["a.sh", "b.sh", "c.sh"].map(|name| HookName::parse(name).unwrap());
        let given = [
            (small.clone(), of("short")),
            (large.clone(), of(&noise(60_000))),
            (larger.clone(), of(&noise(90_000))),
        ];
        let stored = store(given.into()).unwrap();
        assert_eq!(stored.left_out, [larger, large]);
        let kept = unpack(&stored.packed.unwrap()).unwrap();
        assert_eq!(kept.into_keys().collect::<Vec<_>>(), [small]);
    }
}
