//! Symbols of the draft as expressions of Jakarta Batch.
//!
//! In the draft a name has one meaning: the value in the partition, else the job parameter, else the property of the outermost element.
//! An expression names the source of its value: each list that is written gives its properties the value that they have in the draft
//! (`#{jobParameters['x']}?:value;`), so that everything inside can refer to them by `#{jobProperties['x']}`.

use std::collections::HashMap;

use super::jakarta::ToJakarta;
use super::{listed, names};
use crate::codes;
use crate::diagnostics::quoted;
use crate::dialect::Dialect;
use crate::model::Target;
use crate::span::Span;
use crate::symbols::{self, Piece};
use crate::tree::{Attribute, Element};

/// Maximum number of properties that refer to each other in a chain, as in substitution.
const MAX_DEPTH: usize = 64;

/// Maximum length of a value, as in substitution.
const MAX_VALUE_BYTES: usize = 64 << 10;

/// A property as written.
#[derive(Clone, Copy)]
pub(super) struct Definition<'a> {
    pub(super) name: &'a str,
    pub(super) target: Option<Target>,
    pub(super) value: &'a Attribute,
}

/// The properties of an element of the draft.
pub(super) struct Level<'a> {
    // Invariant: of one name, definitions with a target come first.
    by_name: HashMap<&'a str, Vec<usize>>,
    pub(super) definitions: Vec<Definition<'a>>,
    /// True if the element has a list in Jakarta Batch too, which a chunk has not.
    is_written: bool,
}

/// The position of a definition: its level, and its index there.
pub(super) type Position = (usize, usize);

/// The place from which a name is looked up.
#[derive(Clone, Copy)]
pub(super) struct View {
    /// The number of levels that enclose it.
    pub(super) levels: usize,
    /// The artifact of a chunk that the value is for.
    pub(super) target: Option<Target>,
    pub(super) plan: PlanUse,
}

/// The values of a partition that a place has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PlanUse {
    /// None: it is outside of the partitions.
    Nothing,
    /// Those that the document names, and those that nothing else defines.
    Named,
    /// All that an algorithm can plan, too.
    All,
}

/// The partitions in which a name has a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Coverage {
    Never,
    Perhaps,
    Always,
}

/// An expression.
pub(super) struct Expression {
    pub(super) text: String,
    /// The value without the job parameter that overrides it.
    pub(super) plain: String,
}

impl Expression {
    pub(super) fn plain(text: String) -> Expression {
        Expression {
            plain: text.clone(),
            text,
        }
    }
}

pub(super) fn parameter(name: &str) -> String {
    format!("#{{jobParameters['{name}']}}")
}

pub(super) fn property(name: &str) -> String {
    format!("#{{jobProperties['{name}']}}")
}

fn planned(name: &str) -> String {
    format!("#{{partitionPlan['{name}']}}")
}

fn with_default(expression: String, default: &str) -> String {
    match default {
        "" => expression,
        default => format!("{expression}?:{default};"),
    }
}

impl<'a> ToJakarta<'a> {
    /// Enters an element, whose properties are visible from here on.
    pub(super) fn enter(&mut self, element: &'a Element, is_written: bool) {
        let mut level = Level {
            by_name: HashMap::new(),
            definitions: Vec::new(),
            is_written,
        };
        for entry in listed(element) {
            let Some(definition) = self.definition(entry) else {
                continue;
            };
            let same: &mut Vec<usize> = level.by_name.entry(definition.name).or_default();
            let at = if definition.target.is_some() {
                0
            } else {
                same.len()
            };
            same.insert(at, level.definitions.len());
            level.definitions.push(definition);
        }
        self.levels.push(level);
    }

    pub(super) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Returns a property; `None`, after a report, if its name or target is not known before substitution.
    pub(super) fn definition(&mut self, entry: &'a Element) -> Option<Definition<'a>> {
        let (name, value) = (entry.attribute("name")?, entry.attribute("value")?);
        let target = entry.attribute("target");
        for key in [Some(name), target].into_iter().flatten() {
            if symbols::has_symbols(self.from, &key.value) {
                self.sink.error(codes::NO_PROPERTY, &key.value.span, |d| {
                    d.message(format!("the {} of a property contains a symbol", key.name.value))
                        .label("only known at the start of the job")
                        .help("write it without a symbol")
                });
                return None;
            }
        }
        Some(Definition {
            name: &name.value.value,
            target: target.and_then(|target| Target::from_name(&target.value)),
            value,
        })
    }

    /// Returns the view from here.
    pub(super) fn view(&self, plan: PlanUse) -> View {
        View {
            levels: self.levels.len(),
            target: None,
            plan,
        }
    }

    pub(super) fn at(&self, (level, index): Position) -> Definition<'a> {
        self.levels[level].definitions[index]
    }

    /// Returns the definition that a name has in the draft: that of the outermost element. Skips those that are being converted.
    pub(super) fn find(&self, name: &str, view: View, pending: &[Position]) -> Option<Position> {
        let levels = self.levels[..view.levels].iter().enumerate();
        let mut found = levels.flat_map(|(level, properties)| {
            let same = properties.by_name.get(name).map_or(&[][..], Vec::as_slice);
            same.iter().map(move |index| (level, *index))
        });
        found.find(|position| {
            let target = self.at(*position).target;
            (target.is_none() || target == view.target) && !pending.contains(position)
        })
    }

    /// Converts an attribute at this place.
    pub(super) fn attribute(&mut self, attribute: &Attribute, plan: PlanUse) -> String {
        self.value(attribute, self.view(plan))
    }

    /// Converts a value.
    pub(super) fn value(&mut self, attribute: &Attribute, view: View) -> String {
        let mut text = String::new();
        for piece in symbols::pieces(self.from, &attribute.value) {
            match piece {
                Piece::Literal(literal) => {
                    // After an expression it would be the start of a default.
                    if text.ends_with("']}") && literal.starts_with("?:") {
                        self.literal_syntax(attribute);
                    }
                    text.push_str(literal);
                }
                Piece::Symbol(name, range) => {
                    let place = symbols::place(attribute, range);
                    text.push_str(&self.symbol(name.name, &place, view).text);
                }
                Piece::Malformed(range, mistake) => {
                    symbols::report(self.from, attribute, range, &mistake, self.sink);
                }
            }
            if text.len() > MAX_VALUE_BYTES {
                self.too_large(&attribute.value.span);
                return String::new();
            }
        }
        // Of several pieces, too.
        if attribute.value.contains("#{") || !self.is_well_formed(&text) {
            self.literal_syntax(attribute);
        }
        text
    }

    fn is_well_formed(&self, text: &str) -> bool {
        !symbols::pieces(self.to, text).any(|piece| matches!(piece, Piece::Malformed(..)))
    }

    fn literal_syntax(&mut self, attribute: &Attribute) {
        let to = self.to;
        self.sink
            .error(codes::LITERAL_SYNTAX, &attribute.value.span, |d| {
                d.message(format!(
                    "literal text of this value is an expression in the dialect `{to}`"
                ))
                .label("there is no escape")
                .help("pass the text as a job parameter")
            });
    }

    pub(super) fn too_large(&mut self, span: &Span) {
        self.is_full = true;
        self.once("large", |sink| {
            sink.error(codes::CONVERSION_LIMIT, span, |d| {
                d.message("the converted document is too large")
                    .label("the limit is exceeded here")
                    .help("link the artifacts of the job, so that they get only the properties that they declare")
            });
        });
    }

    /// Converts a symbol.
    pub(super) fn symbol(&mut self, name: &str, place: &Span, view: View) -> Expression {
        if self.is_full {
            return Expression::plain(String::new());
        }
        self.check_name(name, place);
        let found = self.find(name, view, &self.pending);
        let coverage = self.coverage(name, view, found.is_some());
        if coverage == Coverage::Always {
            return Expression::plain(planned(name));
        }
        let base = match found {
            Some(found) => self.reference_to(found, place, view),
            None => {
                let span = self.undefined.entry(name.to_owned());
                span.or_insert_with(|| place.clone());
                Expression::plain(parameter(name))
            }
        };
        self.in_partition(name, coverage, base, place)
    }

    /// An expression ends with the first `']}`.
    pub(super) fn check_name(&mut self, name: &str, place: &Span) {
        if name.contains("']}") {
            let to = self.to;
            self.sink.error(codes::NO_PROPERTY, place, |d| {
                d.message(format!(
                    "the name {} cannot be written in an expression",
                    quoted(name)
                ))
                .label(format!("contains `']}}`, the end of an expression of `{to}`"))
                .help("rename the property or parameter")
            });
        }
    }

    pub(super) fn coverage(&self, name: &str, view: View, is_defined: bool) -> Coverage {
        let Some(plan) = self.plan.as_ref().filter(|_| view.plan != PlanUse::Nothing) else {
            return Coverage::Never;
        };
        // The value of a property of the plan does not mean itself.
        if self.defining == Some(name) {
            return Coverage::Never;
        }
        if !plan.is_computed {
            return plan.coverage(name, view.target);
        }
        match view.plan {
            PlanUse::Named if is_defined => Coverage::Never,
            _ => Coverage::Perhaps,
        }
    }

    /// Returns the value of a name in a partition: that of the plan, else `base`.
    pub(super) fn in_partition(
        &mut self,
        name: &str,
        coverage: Coverage,
        base: Expression,
        place: &Span,
    ) -> Expression {
        let default = match coverage {
            Coverage::Never => return base,
            Coverage::Always => return Expression::plain(planned(name)),
            Coverage::Perhaps if !base.text.contains(';') => base.text,
            Coverage::Perhaps if !base.plain.contains(';') => {
                self.sink.warning(codes::OTHER_OVERRIDE, place, |d| {
                    d.message(format!(
                        "a job parameter {} no longer overrides this value",
                        quoted(name)
                    ))
                    .label("the default of a value of the partition cannot have a default itself")
                    .help(format!("give {} to every partition", quoted(name)))
                });
                base.plain
            }
            Coverage::Perhaps if self.plan.as_ref().is_some_and(|plan| plan.is_computed) => {
                self.sink.warning(codes::OTHER_OVERRIDE, place, |d| {
                    d.message(format!(
                        "a value {} of the plan no longer overrides this value",
                        quoted(name)
                    ))
                    .label("contains `;`, which ends a default")
                    .help("let the algorithm plan other names than those of properties")
                });
                return base;
            }
            Coverage::Perhaps => {
                self.sink.error(codes::NO_PROPERTY, place, |d| {
                    d.message(format!("only some partitions give a value to {}", quoted(name)))
                        .label("the value of the others contains `;`, which ends a default")
                        .help(format!("give {} to every partition", quoted(name)))
                });
                String::new()
            }
        };
        Expression::plain(with_default(planned(name), &default))
    }

    /// Returns the expression that refers to a definition.
    pub(super) fn reference_to(&mut self, found: Position, place: &Span, view: View) -> Expression {
        let Definition { name, target, .. } = self.at(found);
        if self.pending.len() >= MAX_DEPTH {
            self.is_full = true;
            self.sink.error(codes::CONVERSION_LIMIT, place, |d| {
                d.message(format!(
                    "symbols refer to each other over more than {MAX_DEPTH} levels"
                ))
                .label("the limit is exceeded here")
            });
            return Expression::plain(String::new());
        }
        if self.is_in_list(found) {
            if self.find(name, view, &[]) == Some(found) {
                self.emit(found, view);
                return Expression::plain(property(name));
            }
            // The list has another property of this name, which is being converted.
            return Expression::plain(self.inner(found, view));
        }
        if self.levels[found.0].is_written
            && target.is_none()
            && !self.depends_on_plan(found, view, &mut Vec::new())
        {
            return Expression::plain(property(name));
        }
        let value = self.inner(found, view);
        self.overridable(name, value, &self.at(found).value.value.span)
    }

    /// Returns whether the value of a property of the job differs in the partitions, because it uses values of the plan.
    fn depends_on_plan(&self, position: Position, view: View, seen: &mut Vec<Position>) -> bool {
        let is_outside = position.0 == 0 && self.plan.as_ref().is_some_and(|plan| !plan.is_computed);
        if !is_outside || seen.contains(&position) {
            return false;
        }
        seen.push(position);
        let outside = View { levels: 1, ..view };
        symbols::pieces(self.from, &self.at(position).value.value).any(|piece| {
            let Piece::Symbol(used, _) = piece else {
                return false;
            };
            let found = self.find(used.name, outside, seen);
            self.coverage(used.name, view, found.is_some()) != Coverage::Never
                || found.is_some_and(|found| self.depends_on_plan(found, view, seen))
        })
    }

    /// Converts the value of a definition, as seen from its element.
    pub(super) fn inner(&mut self, position: Position, view: View) -> String {
        let Definition { target, value, .. } = self.at(position);
        self.pending.push(position);
        let text = self.value(
            value,
            View {
                levels: position.0 + 1,
                target: target.or(view.target),
                plan: view.plan,
            },
        );
        self.pending.pop();
        text
    }

    /// Returns a value that a job parameter overrides.
    pub(super) fn overridable(&mut self, name: &str, value: String, span: &Span) -> Expression {
        let given = parameter(name);
        if value.contains(&given) {
            // What depends on itself is the parameter, or else an error.
            return Expression::plain(given);
        }
        if value.contains(';') {
            self.sink.warning(codes::OTHER_OVERRIDE, span, |d| {
                d.message(format!(
                    "a job parameter {} no longer overrides this property",
                    quoted(name)
                ))
                .label("contains `;`, which ends a default")
                .help(format!(
                    "to override it, write `{given}` and pass the value as a parameter"
                ))
            });
            return Expression::plain(value);
        }
        Expression {
            text: with_default(given, &value),
            plain: value,
        }
    }

    /// Reports the symbols that only a job parameter can define now.
    pub(super) fn report_undefined(&mut self) {
        let Some((first, span)) = self.undefined.first_key_value() else {
            return;
        };
        let all = names(self.undefined.keys().map(String::as_str));
        self.sink.warning(codes::OTHER_OVERRIDE, span, |d| {
            d.message(format!("system properties no longer give a value to {all}"))
                .label("a job parameter, or else empty")
                .help(format!(
                    "if a system property is meant, write `#{{systemProperties['{first}']}}`; a job parameter is no longer required at \
                     the start"
                ))
        });
    }

    /// Runs an action the first time that it is called for a key.
    pub(super) fn once(&mut self, key: &str, action: impl FnOnce(&mut crate::diagnostics::Sink)) {
        if self.reported.insert(key.to_owned()) {
            action(self.sink);
        }
    }

    /// Returns the value of an attribute without symbols.
    pub(super) fn literal<'e>(&self, element: &'e Element, name: &str) -> Option<&'e str> {
        super::literal(self.from, element, name)
    }

    pub(super) fn dialects(&self) -> (Dialect, Dialect) {
        (self.from, self.to)
    }
}
