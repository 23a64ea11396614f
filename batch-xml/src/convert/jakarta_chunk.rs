//! Chunks of the draft as chunks of Jakarta Batch.

use super::jakarta::ToJakarta;
use super::jakarta_values::{Expression, PlanUse, parameter};
use super::{ALL_ITEMS, ITEM_TIME};
use crate::codes;
use crate::model::Target;
use crate::tree::{Attribute, Element};
use crate::values;
use crate::write::Node;

/// The default of `commit-interval`, and of `chunk-size` if the interval does not count items.
const DEFAULT_ITEMS: &str = "10";

const CLASSES: [&str; 3] = [
    "skippable-exception-classes",
    "retryable-exception-classes",
    "no-rollback-exception-classes",
];

impl<'a> ToJakarta<'a> {
    pub(super) fn chunk(&mut self, chunk: &'a Element) -> Node {
        // Its properties are those of its artifacts.
        let level = self.levels.len();
        self.enter(chunk, false);
        let mut node = Node::new("chunk");
        let algorithm = self.interval(chunk, level, &mut node);
        for limit in ["skip-limit", "retry-limit"] {
            if let Some(limit) = chunk.attribute(limit) {
                node.set(&limit.name, self.attribute(limit, PlanUse::All));
            }
        }
        for target in Target::ALL {
            node.push(self.part(chunk, target, level));
        }
        if let Some(algorithm) = algorithm {
            node.push(algorithm);
        }
        self.report_classes(chunk);
        for name in CLASSES {
            if let Some(classes) = chunk.child(name) {
                node.push(self.classes(classes));
            }
        }
        self.leave();
        node
    }

    /// Returns the element of the reader, processor or writer.
    fn part(&mut self, chunk: &'a Element, target: Target, level: usize) -> Node {
        let reference = chunk.attribute(target.as_str());
        let list = self.artifact_list(reference, level, Some(target), PlanUse::All);
        let reference = reference.map(|reference| self.attribute(reference, PlanUse::All));
        Node::new(target.as_str()).with_some("ref", reference).and(list)
    }

    fn classes(&mut self, classes: &Element) -> Node {
        let mut node = Node::new(classes.name.value.as_str());
        for entry in &classes.children {
            let class = entry.attribute("class");
            let class = class.map(|class| self.attribute(class, PlanUse::All));
            node.push(Node::new(entry.name.value.as_str()).with_some("class", class));
        }
        node
    }

    /// Converts the attributes that end a chunk. Returns the checkpoint algorithm.
    fn interval(&mut self, chunk: &'a Element, level: usize, node: &mut Node) -> Option<Node> {
        self.check_buffers(chunk);
        let policy = chunk.attribute("checkpoint-policy");
        let policy_text = match policy {
            Some(_) => self.literal(chunk, "checkpoint-policy"),
            None => Some("item"),
        };
        let commit = chunk.attribute("commit-interval");
        let mut interval = commit.map(|commit| self.attribute(commit, PlanUse::All));
        match policy_text {
            Some("custom") => return self.algorithm(chunk, level, node),
            Some("time") => {
                let seconds = interval.take();
                node.set("item-count", ALL_ITEMS);
                node.set("time-limit", seconds.as_deref().unwrap_or(DEFAULT_ITEMS));
                self.check_size(chunk, None);
            }
            other => {
                if let Some(policy) = policy.filter(|_| other.is_none()) {
                    self.no_value(
                        policy,
                        "only known at the start of the job",
                        "write `item`, `time` or `custom`",
                    );
                }
                if let Some(interval) = interval {
                    node.set("item-count", interval);
                }
                self.check_size(
                    chunk,
                    Some(commit.map_or(DEFAULT_ITEMS, |commit| &commit.value.value)),
                );
            }
        }
        None
    }

    /// Converts a checkpoint algorithm: the built-in one to attributes of the chunk.
    fn algorithm(&mut self, chunk: &'a Element, level: usize, node: &mut Node) -> Option<Node> {
        let algorithm = chunk.child("checkpoint-algorithm");
        let is_built_in = algorithm
            .is_some_and(|algorithm| self.literal(algorithm, "ref") == Some(ITEM_TIME))
            && self.artifacts.properties(ITEM_TIME).is_none();
        let Some(algorithm) = algorithm.filter(|_| is_built_in) else {
            node.set("checkpoint-policy", "custom");
            self.check_size(chunk, None);
            return algorithm
                .map(|found| self.artifact_from("checkpoint-algorithm", found, level, PlanUse::All));
        };
        self.enter(algorithm, false);
        let items = self.of_item_time(algorithm, "item-count", DEFAULT_ITEMS);
        let seconds = self.of_item_time(algorithm, "time-limit", "0");
        self.leave();
        let count = match items.plain.parse::<u32>() {
            Ok(_) => Some(items.plain.as_str()),
            Err(_) => None,
        };
        self.check_size(chunk, count);
        node.set("item-count", items.text);
        node.set("time-limit", seconds.text);
        None
    }

    /// Returns the value of a property of the built-in algorithm.
    fn of_item_time(&mut self, algorithm: &Element, name: &str, default: &str) -> Expression {
        let view = self.view(PlanUse::All);
        let span = &algorithm.name.span;
        let found = self.find(name, view, &[]);
        let base = match found {
            Some(found) => self.reference_to(found, span, view),
            None => Expression {
                text: format!("{}?:{default};", parameter(name)),
                plain: default.to_owned(),
            },
        };
        let coverage = self.coverage(name, view, found.is_some());
        self.in_partition(name, coverage, base, span)
    }

    /// Reports buffers that a chunk of Jakarta Batch does not have.
    fn check_buffers(&mut self, chunk: &Element) {
        let literal = |name| super::literal(self.from, chunk, name);
        let buffers = literal("buffer-reads").and_then(values::boolean) == Some(true);
        let timeout = literal("checkpoint-timeout").and_then(|seconds| values::integer(seconds, 0));
        if let Some(attribute) = chunk.attribute("buffer-reads").filter(|_| !buffers) {
            self.no_value(
                attribute,
                "items are always kept until their checkpoint",
                "remove the attribute; set `commit-interval` to 1 to write each item alone",
            );
        }
        if let Some(attribute) = chunk
            .attribute("checkpoint-timeout")
            .filter(|_| timeout != Some(0))
        {
            self.no_value(
                attribute,
                "a chunk has no timeout",
                "set `batch.step.timeout` on the step, or let a checkpoint algorithm return the timeout",
            );
        }
    }

    /// Reports a `chunk-size` by which the writer is called more than once for each checkpoint. `items` is the interval, if it counts
    /// items.
    fn check_size(&mut self, chunk: &Element, items: Option<&str>) {
        let number = |text: &str| values::integer(text, 1);
        let Some(size) = chunk.attribute("chunk-size") else {
            let policy = chunk.attribute("checkpoint-policy").filter(|_| {
                let items = items.and_then(number);
                items.is_none_or(|items| Some(items) > number(DEFAULT_ITEMS))
            });
            if let Some(policy) = policy.filter(|policy| matches!(policy.value.as_str(), "time" | "custom")) {
                self.warn_of_size(policy);
            }
            return;
        };
        let is_same = items == Some(size.value.as_str())
            || match (number(&size.value), items.map(number)) {
                (Some(size), Some(items)) => items.is_some_and(|items| size >= items),
                (Some(size), None) => Some(size) == number(ALL_ITEMS),
                (None, _) => false,
            };
        if !is_same {
            self.no_value(
                size,
                "the writer gets all items of a chunk at once",
                "set it to the `commit-interval`, which is then the size of both",
            );
        }
    }

    fn warn_of_size(&mut self, policy: &Attribute) {
        self.sink.warning(codes::OTHER_CHUNK, &policy.value.span, |d| {
            d.message(format!(
                "the writer gets all items of a chunk at once, and not {DEFAULT_ITEMS}"
            ))
            .label("`chunk-size` has this default for the policies `time` and `custom`")
            .help(format!(
                "write `chunk-size=\"{ALL_ITEMS}\"` if the writer can take any number of items"
            ))
        });
    }

    /// Warns once of each rule by which the dialects skip and retry differently.
    fn report_classes(&mut self, chunk: &Element) {
        let (from, to) = self.dialects();
        let rules = [
            (
                CLASSES[0],
                from.failed_write_skips_its_list() != to.failed_write_skips_its_list(),
                "a skipped write skips the whole list of items",
                "set `commit-interval` to 1 if only the bad item must be skipped",
            ),
            (
                CLASSES[1],
                from.retries_input() != to.retries_input(),
                "errors of the reader and the processor are retried too",
                "exclude the classes that only the reader or processor returns",
            ),
        ];
        for (name, differs, message, help) in rules {
            let Some(list) = chunk
                .child(name)
                .filter(|list| differs && list.child("include").is_some())
            else {
                continue;
            };
            self.once(name, |sink| {
                sink.warning(codes::OTHER_SKIPPING, &list.name.span, |d| {
                    d.message(format!("{message} in the dialect `{to}`"))
                        .label(format!(
                            "`{from}` concerns single items, and only writes are retried"
                        ))
                        .help(help)
                });
            });
        }
    }
}
