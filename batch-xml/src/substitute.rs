//! Override and substitution: what `${name}` stands for at a place of the document (4.7 of the draft).
//!
//! A name means the same wherever it is used: the job parameter, else the system property, else the property
//! of the outermost enclosing element that has one. The values of parameters and system properties are plain
//! text; the values of properties may hold symbols, which see what encloses the property, not what encloses
//! its use.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use crate::codes;
use crate::diagnostics::{Sink, quoted};
use crate::limits::Limits;
use crate::span::{Span, Spanned};
use crate::suggest;
use crate::symbols::{self, Piece};
use crate::tree::Attribute;

/// What is known outside the document when a job starts.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// The job parameters. They override everything. Spec: OVR-02
    pub parameters: &'a BTreeMap<String, String>,
    /// The system properties. They override the properties in the XML. Spec: OVR-04
    pub system: &'a BTreeMap<String, String>,
}

impl<'a> Values<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.parameters
            .get(name)
            .or_else(|| self.system.get(name))
            .map(String::as_str)
    }
}

/// The artifact of a chunk that a property is for.
///
/// Spec: JSL-CHPROP-03
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    Reader,
    Processor,
    Writer,
}

/// A property as written in the list of an enclosing element.
#[derive(Debug)]
pub(crate) struct Definition<'a> {
    /// Unique within one resolution.
    pub(crate) number: usize,
    pub(crate) name: Spanned<String>,
    pub(crate) target: Option<Target>,
    pub(crate) value: &'a Attribute,
}

/// The properties of one enclosing element.
#[derive(Debug, Default)]
pub(crate) struct Level<'a> {
    pub(crate) definitions: Vec<Definition<'a>>,
    // Invariant: of one name, those with a target come first, so that the list's order does not matter.
    by_name: HashMap<String, Vec<usize>>,
}

impl<'a> Level<'a> {
    pub(crate) fn define(&mut self, definition: Definition<'a>) {
        let same_name = self.by_name.entry(definition.name.value.clone()).or_default();
        let at = if definition.target.is_some() {
            0
        } else {
            same_name.len()
        };
        same_name.insert(at, self.definitions.len());
        self.definitions.push(definition);
    }

    /// The definitions of a name that concern an artifact, the more special one first.
    pub(crate) fn matching(
        &self,
        name: &str,
        target: Option<Target>,
    ) -> impl Iterator<Item = &Definition<'a>> {
        let same_name = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let all = same_name.iter().map(|index| &self.definitions[*index]);
        all.filter(move |definition| definition.target.is_none() || definition.target == target)
    }
}

/// From where a value is looked at.
#[derive(Clone, Copy)]
struct View {
    /// How many levels enclose it.
    levels: usize,
    /// The artifact the value is for.
    target: Option<Target>,
}

/// A property whose value is being put together.
struct Pending {
    number: usize,
    name: String,
}

/// An amount that is used up over one resolution.
#[derive(Debug)]
struct Budget {
    what: &'static str,
    limit: usize,
    left: usize,
}

impl Budget {
    fn new(what: &'static str, limit: usize) -> Budget {
        Budget {
            what,
            limit,
            left: limit,
        }
    }
}

/// The names visible at a place of the document, with everything needed to give them values.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    values: Values<'a>,
    limits: &'a Limits,
    pub(crate) levels: Vec<Level<'a>>,
    /// The names of all properties met.
    pub(crate) names: BTreeSet<String>,
    pub(crate) definitions: usize,
    /// The values of properties looked at from their own place, by number and target.
    known: HashMap<(usize, Option<Target>), Option<String>>,
    /// The numbers of properties that have no value; the reason was reported.
    failed: HashSet<usize>,
    symbols: Budget,
    value_bytes: Budget,
    work_bytes: Budget,
    list_bytes: Budget,
    /// A limit was passed: nothing more is substituted.
    pub(crate) stopped: bool,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(values: Values<'a>, limits: &'a Limits) -> Scope<'a> {
        // What is put together on the way to a value, and thrown away because of a mistake, is bounded too.
        let work = limits.job_value_bytes.saturating_mul(64);
        Scope {
            values,
            limits,
            levels: Vec::new(),
            names: BTreeSet::new(),
            definitions: 0,
            known: HashMap::new(),
            failed: HashSet::new(),
            symbols: Budget::new("symbols are looked up for one job", limits.symbols),
            value_bytes: Budget::new("bytes of values are made for one job", limits.job_value_bytes),
            work_bytes: Budget::new("bytes are put together for the values of one job", work),
            list_bytes: Budget::new(
                "bytes of properties are handed to the artifacts of one job",
                limits.property_list_bytes,
            ),
            stopped: false,
        }
    }

    /// The value of an attribute; `None` if it has none, which was reported.
    ///
    /// Spec: SUBST-01, SUBST-02, JSL-DOC-12
    pub(crate) fn attribute(&mut self, attribute: &Attribute, sink: &mut Sink) -> Option<Spanned<String>> {
        let view = View {
            levels: self.levels.len(),
            target: None,
        };
        let value = self.expand(attribute, view, &mut Vec::new(), sink)?;
        self.made(value, &attribute.value.span, sink)
    }

    /// The value of the property that decides about `name` here.
    ///
    /// Spec: OVR-02, OVR-04, OVR-05, OVR-07
    pub(crate) fn effective(
        &mut self,
        name: &str,
        target: Option<Target>,
        sink: &mut Sink,
    ) -> Option<Spanned<String>> {
        let found = self.levels.iter().enumerate().find_map(|(level, properties)| {
            properties
                .matching(name, target)
                .next()
                .map(|definition| (level, definition))
        });
        let (
            level,
            &Definition {
                number,
                value,
                target: own_target,
                ..
            },
        ) = found?;
        let span = value.value.span.clone();
        if let Some(given) = self.values.get(name) {
            self.check_length(given.len(), &span, sink)?;
            return Some(Spanned::new(given.to_owned(), span));
        }
        let target = own_target.or(target);
        if !self.known.contains_key(&(number, target)) {
            let view = View {
                levels: level + 1,
                target,
            };
            let expanded = self.property(number, name, value, view, &mut Vec::new(), sink);
            let made = expanded.and_then(|text| self.made(text, &span, sink));
            self.known.insert((number, target), made.map(|made| made.value));
        }
        let value = self.known.get(&(number, target)).cloned().flatten()?;
        Some(Spanned::new(value, span))
    }

    /// Accounts for a property handed to an artifact.
    pub(crate) fn handed(&mut self, bytes: usize, span: &Span, sink: &mut Sink) -> Option<()> {
        self.spend(|scope| &mut scope.list_bytes, bytes, span, sink)
    }

    /// The value of a property with its symbols replaced. Its view is the element it belongs to.
    fn property(
        &mut self,
        number: usize,
        name: &str,
        value: &Attribute,
        view: View,
        pending: &mut Vec<Pending>,
        sink: &mut Sink,
    ) -> Option<String> {
        if self.failed.contains(&number) {
            return None;
        }
        pending.push(Pending {
            number,
            name: name.to_owned(),
        });
        let expanded = self.expand(value, view, pending, sink);
        pending.pop();
        if expanded.is_none() {
            self.failed.insert(number);
        }
        expanded
    }

    /// Replaces the symbols of a value. Goes on after a mistake, to find the others.
    fn expand(
        &mut self,
        attribute: &Attribute,
        view: View,
        pending: &mut Vec<Pending>,
        sink: &mut Sink,
    ) -> Option<String> {
        if self.stopped {
            return None;
        }
        if !symbols::has_symbols(&attribute.value) {
            return Some(attribute.value.value.clone());
        }
        let span = &attribute.value.span;
        let mut text = Some(String::new());
        for piece in symbols::pieces(&attribute.value) {
            let part = match piece {
                Piece::Literal(literal) => Some(literal.to_owned()),
                Piece::Symbol(name, range) => self.symbol(name, attribute, range, view, pending, sink),
                // Reported when the symbols of the document were collected.
                Piece::Malformed(..) => None,
            };
            let (Some(so_far), Some(part)) = (text.as_mut(), part) else {
                text = None;
                continue;
            };
            self.check_length(so_far.len() + part.len(), span, sink)?;
            self.spend(|scope| &mut scope.work_bytes, part.len(), span, sink)?;
            so_far.push_str(&part);
        }
        text
    }

    fn symbol(
        &mut self,
        name: &str,
        attribute: &Attribute,
        range: Range<usize>,
        view: View,
        pending: &mut Vec<Pending>,
        sink: &mut Sink,
    ) -> Option<String> {
        let place = symbols::place(attribute, range);
        self.spend(|scope| &mut scope.symbols, 1, &place, sink)?;
        if let Some(given) = self.values.get(name) {
            return Some(given.to_owned());
        }
        let is_pending = |number| pending.iter().position(|property| property.number == number);
        let mut passed_over = None;
        let mut found = None;
        'levels: for (level, properties) in self.levels[..view.levels].iter().enumerate() {
            for definition in properties.matching(name, view.target) {
                // Being put together itself, so the symbol means another one (D-39).
                if let Some(position) = is_pending(definition.number) {
                    passed_over = Some(position);
                    continue;
                }
                found = Some((level, definition.number, definition.value, definition.target));
                break 'levels;
            }
        }
        let Some((level, number, value, target)) = found else {
            match passed_over {
                Some(position) => self.report_cycle(&pending[position..], name, &place, sink),
                None => self.report_unresolved(name, view, &place, sink),
            }
            return None;
        };
        if pending.len() >= self.limits.max_symbol_depth() {
            self.stop(
                sink,
                &place,
                format!(
                    "symbols need each other over more than {} levels",
                    self.limits.max_symbol_depth()
                ),
            );
            return None;
        }
        let view = View {
            levels: level + 1,
            target: target.or(view.target),
        };
        self.property(number, name, value, view, pending, sink)
    }

    fn report_cycle(&mut self, cycle: &[Pending], name: &str, place: &Span, sink: &mut Sink) {
        self.failed.extend(cycle.iter().map(|property| property.number));
        let path: Vec<String> = cycle
            .iter()
            .map(|property| property.name.as_str())
            .chain([name])
            .map(quoted)
            .collect();
        sink.error(codes::SYMBOL_CYCLE, place, |d| {
            d.message(format!(
                "the value of {} depends on itself: {}",
                quoted(name),
                path.join(" -> ")
            ))
            .label("no other property or parameter of this name is visible here")
        });
    }

    fn report_unresolved(&self, name: &str, view: View, place: &Span, sink: &mut Sink) {
        sink.error(codes::UNRESOLVED_SYMBOL, place, |d| {
            let enclosing = self.levels[..view.levels]
                .iter()
                .flat_map(|level| &level.definitions);
            let names = enclosing
                .map(|definition| definition.name.value.as_str())
                .chain(self.values.parameters.keys().map(String::as_str))
                .chain(self.values.system.keys().map(String::as_str));
            d.message(format!("the symbol {} has no value", quoted(name)))
                .label("no job parameter, system property or enclosing property has this name")
                .suggestion(suggest::nearest(name, names))
        });
    }

    /// A finished value.
    fn made(&mut self, value: String, span: &Span, sink: &mut Sink) -> Option<Spanned<String>> {
        self.check_length(value.len(), span, sink)?;
        self.spend(|scope| &mut scope.value_bytes, value.len(), span, sink)?;
        Some(Spanned::new(value, span.clone()))
    }

    fn check_length(&mut self, bytes: usize, span: &Span, sink: &mut Sink) -> Option<()> {
        if bytes > self.limits.value_bytes {
            let limit = self.limits.value_bytes;
            self.stop(
                sink,
                span,
                format!("the value has more than {limit} bytes after substitution"),
            );
            return None;
        }
        Some(())
    }

    fn spend(
        &mut self,
        budget: for<'s> fn(&'s mut Scope<'a>) -> &'s mut Budget,
        amount: usize,
        span: &Span,
        sink: &mut Sink,
    ) -> Option<()> {
        if self.stopped {
            return None;
        }
        let budget = budget(self);
        match budget.left.checked_sub(amount) {
            Some(left) => {
                budget.left = left;
                Some(())
            }
            None => {
                let message = format!("no more than {} {}", budget.limit, budget.what);
                self.stop(sink, span, message);
                None
            }
        }
    }

    fn stop(&mut self, sink: &mut Sink, span: &Span, message: String) {
        self.stopped = true;
        sink.error(codes::SUBSTITUTION_LIMIT, span, |d| {
            d.message(message)
                .label("the limit is passed here")
                .help("nothing after this was substituted")
        });
    }
}
