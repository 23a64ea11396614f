//! Partitions of a topic: which ones are read, and which one a message goes to.

use std::collections::BTreeSet;
use std::str::FromStr;

/// The property `partitions` of a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Partitions {
    #[default]
    All,
    /// The partitions of these numbers.
    Some(BTreeSet<i32>),
}

/// More than a cluster has.
const LARGEST: i32 = 1_000_000;

impl FromStr for Partitions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "all" {
            return Ok(Self::All);
        }
        let mut partitions = BTreeSet::new();
        for part in text.split(',') {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| {
                text.trim()
                    .parse()
                    .ok()
                    .filter(|number| (0..=LARGEST).contains(number))
            };
            match (number(from), number(to)) {
                (Some(from), Some(to)) if from <= to => partitions.extend(from..=to),
                _ => return Err("expected `all`, or numbers of partitions such as `0,2-5`".to_owned()),
            }
        }
        Ok(Self::Some(partitions))
    }
}

impl Partitions {
    /// Returns the partitions of the topic that are read, in ascending order. The error names one that does not exist.
    pub(super) fn of(&self, topic: impl Iterator<Item = i32>) -> Result<Vec<i32>, String> {
        let all: BTreeSet<i32> = topic.collect();
        let Self::Some(partitions) = self else {
            return Ok(all.into_iter().collect());
        };
        match partitions.difference(&all).next() {
            None => Ok(partitions.iter().copied().collect()),
            Some(missing) => Err(format!(
                "the topic has no partition {missing}; its {} partitions are numbered from 0",
                all.len()
            )),
        }
    }
}

/// Returns the partition of a key, of this number of partitions, as Kafka's own producers choose it, so all messages of a key are in one.
pub(super) fn of_key(key: &[u8], partitions: usize) -> usize {
    let positive = murmur2(key) & 0x7fff_ffff;
    positive as usize % partitions
}

/// The hash MurmurHash2 with the seed of Kafka.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    const SEED: u32 = 0x9747_b28c;
    let mut hash = SEED ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let word = word
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u32::from(*byte));
        let mixed = word.wrapping_mul(M);
        let mixed = (mixed ^ mixed >> 24).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ mixed;
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let rest = rest
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash = (hash ^ rest).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_numbers_and_ranges() {
        let of = |text: &str| text.parse::<Partitions>().unwrap().of(0..6);
        assert_eq!(of("all"), Ok(vec![0, 1, 2, 3, 4, 5]));
        assert_eq!(of("4, 0-1"), Ok(vec![0, 1, 4]));
        let missing = of("0,5-7").unwrap_err();
        assert!(missing.contains("no partition 6; its 6 partitions"), "{missing}");
        for text in ["", "a", "1-", "3-2", "-1", "0,", "1-2000000"] {
            assert!(text.parse::<Partitions>().is_err(), "{text}");
        }
    }

    /// Kafka's producer has the same values, which the tests with a broker compare for many keys.
    #[test]
    fn keys_have_the_partitions_of_other_producers() {
        for (key, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ] {
            assert_eq!(murmur2(key.as_bytes()) as i32, hash, "{key}");
        }
    }
}
