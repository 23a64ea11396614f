//! Override and substitution: the value of `${name}` at a place of the document (4.7 of the draft).
//!
//! A name has one meaning in the whole document: the job parameter, else the system property, else the property of
//! the outermost enclosing element that has one. Parameters and system properties are plain text; the values of
//! properties may contain symbols, which see the elements around the property, not those around its use.

mod reports;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use crate::budget::Budget;
use crate::codes;
use crate::deferral::Deferral;
use crate::diagnostics::Sink;
use crate::dialect::{Dialect, ValueSource};
use crate::limits::Limits;
use crate::model::Target;
use crate::span::{Span, Spanned};
use crate::symbols::{self, Name, Piece};
use crate::tree::Attribute;

/// The values from outside of the document.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// The job parameters. They override everything.
    // Spec: OVR-02
    pub parameters: &'a BTreeMap<String, String>,
    /// The system properties. They override the properties in the XML.
    // Spec: OVR-04
    pub system: &'a BTreeMap<String, String>,
}

impl<'a> Values<'a> {
    /// Returns the value that a source outside the document gives to a name.
    fn get(&self, source: ValueSource, name: &str) -> Option<&'a str> {
        let values = match source {
            ValueSource::JobParameter => self.parameters,
            ValueSource::SystemProperty => self.system,
            ValueSource::Partition | ValueSource::OutermostProperty | ValueSource::InnermostProperty => {
                return None;
            }
        };
        values.get(name).map(String::as_str)
    }
}

/// A property as written in the list of an enclosing element.
#[derive(Debug)]
pub(crate) struct Definition<'a> {
    /// Unique within one resolution.
    pub(crate) number: usize,
    pub(crate) name: Spanned<String>,
    pub(crate) target: Option<Target>,
    pub(crate) value: &'a Attribute,
    /// The value from outside that a property of a partition has under its raw name.
    // Spec: PART-13
    pub(crate) given: Option<&'a str>,
}

impl<'a> Definition<'a> {
    /// Returns the definition as a meaning; symbols in its value see the enclosing `levels`.
    fn seen_from(&self, levels: usize, view: View) -> Meaning<'a> {
        Meaning::Property {
            number: self.number,
            value: self.value,
            view: View {
                levels,
                target: self.target.or(view.target),
            },
        }
    }
}

/// The properties of an element.
#[derive(Debug, Default)]
pub(crate) struct Level<'a> {
    pub(crate) definitions: Vec<Definition<'a>>,
    // Invariant: of one name, definitions with a target come first, so the list's order does not matter.
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

    /// Returns the definitions of a name that apply to an artifact, the more specific one first.
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

/// The values that one partition has in addition to the job.
// Spec: PART-12, OVR-09, D-34
#[derive(Debug)]
pub(crate) struct Subjob<'a> {
    /// The number of levels that enclose its properties.
    pub(crate) levels: usize,
    /// The properties in the XML, by their names without the number.
    pub(crate) properties: Level<'a>,
    /// The plan of the algorithm, which replaces the properties.
    pub(crate) plan: Option<&'a BTreeMap<String, String>>,
    pub(crate) span: Span,
}

impl<'a> Subjob<'a> {
    /// Returns the names of an algorithm's properties, which are not in the XML.
    pub(crate) fn planned(&self) -> impl Iterator<Item = Spanned<String>> {
        let names = self.plan.into_iter().flat_map(BTreeMap::keys);
        names.map(|name| Spanned::new(name.clone(), self.span.clone()))
    }

    /// Returns the names that the partitions define.
    fn names(&self) -> impl Iterator<Item = &str> {
        let planned = self.plan.into_iter().flat_map(BTreeMap::keys);
        let written = self.properties.definitions.iter();
        planned
            .map(String::as_str)
            .chain(written.map(|definition| definition.name.value.as_str()))
    }
}

/// The result of substitution in a text.
#[derive(Clone, Debug)]
enum Text {
    Known(String),
    /// Known only in a partition.
    Deferred,
}

/// The value of an attribute.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    /// As written, if deferred.
    pub(crate) text: Spanned<String>,
    pub(crate) deferred: bool,
}

impl Value {
    /// Returns the value, unless it is deferred.
    pub(crate) fn known(self) -> Option<Spanned<String>> {
        (!self.deferred).then_some(self.text)
    }
}

/// The meaning of a name.
enum Meaning<'a> {
    /// This text, without symbols.
    Given(&'a str),
    Property {
        number: usize,
        value: &'a Attribute,
        view: View,
    },
}

/// The view that a value is resolved from.
#[derive(Clone, Copy)]
struct View {
    /// The number of levels that enclose it.
    levels: usize,
    /// The artifact the value is for.
    target: Option<Target>,
}

/// A property that is being expanded.
struct Pending {
    number: usize,
    name: String,
}

/// The names visible at a place of the document, and their values.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) sink: &'a mut Sink,
    values: Values<'a>,
    limits: &'a Limits,
    pub(crate) levels: Vec<Level<'a>>,
    /// The partitions that enclose the place, outermost first.
    pub(crate) subjobs: Vec<Subjob<'a>>,
    /// The partitioned elements that enclose the place, outermost first, if it is resolved from outside of them.
    pub(crate) deferrals: Vec<Deferral>,
    /// The names of all properties seen.
    pub(crate) names: BTreeSet<String>,
    pub(crate) definitions: usize,
    /// The expanded values of properties, by number, target and depth of partitions. Symbols in a value may depend on the last two.
    known: HashMap<(usize, Option<Target>, usize), Option<Text>>,
    /// The numbers of properties without a value; the reason has been reported.
    failed: HashSet<usize>,
    symbols: Budget,
    value_bytes: Budget,
    work_bytes: Budget,
    list_bytes: Budget,
    /// True if a limit is exceeded: nothing more is substituted.
    pub(crate) stopped: bool,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(
        dialect: Dialect,
        values: Values<'a>,
        limits: &'a Limits,
        sink: &'a mut Sink,
    ) -> Scope<'a> {
        // Text that is expanded and then dropped because of a mistake is limited too.
        let work = limits.job_value_bytes.saturating_mul(16);
        Scope {
            dialect,
            sink,
            values,
            limits,
            levels: Vec::new(),
            subjobs: Vec::new(),
            deferrals: Vec::new(),
            names: BTreeSet::new(),
            definitions: 0,
            known: HashMap::new(),
            failed: HashSet::new(),
            symbols: Budget::new("symbols", limits.symbols),
            value_bytes: Budget::new("bytes of values", limits.job_value_bytes),
            work_bytes: Budget::new("bytes of intermediate values", work),
            list_bytes: Budget::new("bytes of properties for artifacts", limits.property_list_bytes),
            stopped: false,
        }
    }

    /// Returns the value of an attribute; `None`, after a report, if it has none.
    // Spec: SUBST-01, SUBST-02, JSL-DOC-12
    pub(crate) fn attribute(&mut self, attribute: &Attribute) -> Option<Value> {
        let text = self.expand(attribute, self.view(None), &mut Vec::new())?;
        let text = self.made(text, &attribute.value.span)?;
        Some(value(&text, &attribute.value))
    }

    /// Returns the value from outside the document that a name has.
    pub(crate) fn given(&self, name: &str) -> Option<&'a str> {
        self.dialect.first_value(|source| self.values.get(source, name))
    }

    /// Returns whether a job parameter or system property has this name, also in a dialect whose parameters set no properties.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        let Values { parameters, system } = self.values;
        parameters.contains_key(name) || system.contains_key(name)
    }

    /// Returns the effective value of a property that reaches an artifact or context here, with its place in the XML.
    // Spec: OVR-02, OVR-04, OVR-05, OVR-07, PART-12
    pub(crate) fn effective(&mut self, name: &Spanned<String>, target: Option<Target>) -> Option<Value> {
        let view = self.view(target);
        let place = self.place(name, target).unwrap_or_else(|| name.span.clone());
        let meaning = if self.dialect.artifacts_see_outer_properties() {
            self.meaning(name, None, view, &[]).ok()?
        } else {
            // Nothing overrides what is written on the artifact itself.
            let own = self.levels.last()?.matching(name, target).next()?;
            own.seen_from(view.levels, view)
        };
        match meaning {
            Meaning::Given(given) => {
                self.check_length(given.len(), &place)?;
                Some(Value {
                    text: Spanned::new(given.to_owned(), place),
                    deferred: false,
                })
            }
            Meaning::Property { number, value, view } => {
                let key = (number, view.target, self.subjobs.len());
                if !self.known.contains_key(&key) {
                    let expanded = self.property(number, name, value, view, &mut Vec::new());
                    let made = expanded.and_then(|text| self.made(text, &value.value.span));
                    self.known.insert(key, made);
                }
                let text = self.known.get(&key)?.as_ref()?;
                Some(self::value(text, &value.value))
            }
        }
    }

    /// Returns the view from here.
    fn view(&self, target: Option<Target>) -> View {
        View {
            levels: self.levels.len(),
            target,
        }
    }

    /// Returns the place where the XML defines `name` for an artifact.
    fn place(&self, name: &str, target: Option<Target>) -> Option<Span> {
        let of_partitions = self.subjobs.iter().rev().map(|subjob| &subjob.properties);
        let mut lists = of_partitions.chain(&self.levels);
        let found = lists.find_map(|list| list.matching(name, target).next());
        found.map(|definition| definition.value.value.span.clone())
    }

    /// Returns the meaning of a name at a place, by the precedence of the dialect. Skips properties that are being
    /// expanded; `Err` contains the first of them if nothing else is left.
    // Spec: OVR-02, OVR-04, OVR-05, PART-12, SUBST-07, D-34, D-39
    fn meaning(
        &self,
        name: &str,
        source: Option<ValueSource>,
        view: View,
        pending: &[Pending],
    ) -> Result<Meaning<'a>, Option<usize>> {
        let mut passed_over = None;
        let mut is_pending = |number| {
            let position = pending.iter().position(|property| property.number == number);
            passed_over = passed_over.or(position);
            position.is_some()
        };
        let mut value = |source| match source {
            ValueSource::Partition => self.partition_value(name, view, &mut is_pending),
            ValueSource::OutermostProperty => self.outermost_property(name, view, &mut is_pending),
            // A property sees those before it: one that follows it is not defined yet.
            ValueSource::InnermostProperty => self.innermost_property(name, view, pending.last()),
            external => self.values.get(external, name).map(Meaning::Given),
        };
        let found = match source {
            Some(source) => value(source),
            None => self.dialect.first_value(value),
        };
        found.ok_or(passed_over)
    }

    /// Returns the value that the innermost enclosing partition gives to a name.
    fn partition_value(
        &self,
        name: &str,
        view: View,
        is_pending: &mut dyn FnMut(usize) -> bool,
    ) -> Option<Meaning<'a>> {
        for subjob in self.subjobs.iter().rev() {
            if let Some(planned) = subjob.plan.and_then(|plan| plan.get(name)) {
                return Some(Meaning::Given(planned));
            }
            for definition in subjob.properties.matching(name, view.target) {
                if let Some(given) = definition.given {
                    return Some(Meaning::Given(given));
                }
                if !is_pending(definition.number) {
                    return Some(definition.seen_from(subjob.levels, view));
                }
            }
        }
        None
    }

    /// Returns the property of the outermost enclosing element that has one of this name.
    fn outermost_property(
        &self,
        name: &str,
        view: View,
        is_pending: &mut dyn FnMut(usize) -> bool,
    ) -> Option<Meaning<'a>> {
        for (level, properties) in self.levels[..view.levels].iter().enumerate() {
            for definition in properties.matching(name, view.target) {
                if !is_pending(definition.number) {
                    return Some(definition.seen_from(level + 1, view));
                }
            }
        }
        None
    }

    /// Returns the property of the innermost enclosing element that has one of this name, before the property that is being
    /// expanded.
    fn innermost_property(&self, name: &str, view: View, pending: Option<&Pending>) -> Option<Meaning<'a>> {
        let is_visible = |number| pending.is_none_or(|pending| number < pending.number);
        let levels = self.levels[..view.levels].iter().enumerate().rev();
        for (level, properties) in levels {
            let mut found = properties.matching(name, view.target);
            if let Some(definition) = found.find(|definition| is_visible(definition.number)) {
                return Some(definition.seen_from(level + 1, view));
            }
        }
        None
    }

    /// Accounts for a property that an artifact receives.
    pub(crate) fn handed(&mut self, bytes: usize, span: &Span) -> Option<()> {
        self.spend(|scope| &mut scope.list_bytes, bytes, span)
    }

    /// Returns the expanded value of a property, seen from its own element.
    fn property(
        &mut self,
        number: usize,
        name: &str,
        value: &Attribute,
        view: View,
        pending: &mut Vec<Pending>,
    ) -> Option<Text> {
        if self.failed.contains(&number) {
            return None;
        }
        pending.push(Pending {
            number,
            name: name.to_owned(),
        });
        let expanded = self.expand(value, view, pending);
        pending.pop();
        if expanded.is_none() {
            self.failed.insert(number);
        }
        expanded
    }

    /// Replaces the symbols of a value. Continues after a mistake, to find the others.
    fn expand(&mut self, attribute: &Attribute, view: View, pending: &mut Vec<Pending>) -> Option<Text> {
        if self.stopped {
            return None;
        }
        if !symbols::has_symbols(self.dialect, &attribute.value) {
            return Some(Text::Known(attribute.value.value.clone()));
        }
        let whole = attribute.value.value.as_str();
        self.expand_part(attribute, whole, view, pending)
    }

    /// Replaces the symbols of a part of a value: all of it, or the default of a symbol.
    fn expand_part(
        &mut self,
        attribute: &Attribute,
        part: &str,
        view: View,
        pending: &mut Vec<Pending>,
    ) -> Option<Text> {
        let span = &attribute.value.span;
        let mut text = Some(String::new());
        let mut deferred = false;
        for piece in symbols::pieces(self.dialect, part) {
            let part = match piece {
                Piece::Literal(literal) => Some(literal.to_owned()),
                Piece::Symbol(name, range) => match self.symbol(name, attribute, range, view, pending) {
                    Some(Text::Known(text)) => Some(text),
                    Some(Text::Deferred) => {
                        deferred = true;
                        continue;
                    }
                    None => None,
                },
                // Reported when the symbols of the document were collected.
                Piece::Malformed(..) => None,
            };
            let (Some(so_far), Some(part)) = (text.as_mut(), part) else {
                text = None;
                continue;
            };
            self.check_length(so_far.len() + part.len(), span)?;
            self.spend(|scope| &mut scope.work_bytes, part.len(), span)?;
            so_far.push_str(&part);
        }
        let text = text.map(Text::Known)?;
        Some(if deferred { Text::Deferred } else { text })
    }

    fn symbol(
        &mut self,
        name: Name<'_>,
        attribute: &Attribute,
        range: Range<usize>,
        view: View,
        pending: &mut Vec<Pending>,
    ) -> Option<Text> {
        let place = symbols::place(attribute, range);
        self.spend(|scope| &mut scope.symbols, 1, &place)?;
        let text = self.looked_up(name, &place, view, pending)?;
        match (text, name.default) {
            // Without a value, an expression is empty, and an empty one has its default.
            (Text::Known(text), Some(default)) if text.is_empty() => {
                self.expand_part(attribute, default, view, pending)
            }
            (text, _) => Some(text),
        }
    }

    /// Returns the value of a name; `None`, after a report, if it has none and needs one.
    fn looked_up(
        &mut self,
        wanted: Name<'_>,
        place: &Span,
        view: View,
        pending: &mut Vec<Pending>,
    ) -> Option<Text> {
        let Name {
            name,
            source,
            default,
        } = wanted;
        let (number, value, view) = match self.meaning(name, source, view, pending) {
            Ok(Meaning::Given(given)) => return Some(Text::Known(given.to_owned())),
            Ok(Meaning::Property { number, value, view }) => (number, value, view),
            Err(passed_over) => {
                let may_be_deferred = source.is_none_or(|source| source == ValueSource::Partition);
                let mut deferrals = self.deferrals.iter_mut().rev().filter(|_| may_be_deferred);
                if let Some(deferral) = deferrals.find(|deferral| deferral.may_supply(name)) {
                    deferral.used.insert(name.to_owned());
                    if default.is_none() {
                        deferral.required.insert(name.to_owned());
                    }
                    return Some(Text::Deferred);
                }
                if let Some(source) = source {
                    if default.is_none() {
                        self.warn_of_undefined(name, source, view, place);
                    }
                    return Some(Text::Known(String::new()));
                }
                match passed_over {
                    Some(position) => self.report_cycle(&pending[position..], name, place),
                    None => self.report_unresolved(name, view, place),
                }
                return None;
            }
        };
        let depth = self.limits.max_symbol_depth();
        if pending.len() >= depth {
            let message = format!("symbols refer to each other over more than {depth} levels");
            return self.stop(place, message);
        }
        self.property(number, name, value, view, pending)
    }

    /// Accounts for an expanded text.
    fn made(&mut self, text: Text, span: &Span) -> Option<Text> {
        if let Text::Known(text) = &text {
            self.check_length(text.len(), span)?;
            self.spend(|scope| &mut scope.value_bytes, text.len(), span)?;
        }
        Some(text)
    }

    fn check_length(&mut self, bytes: usize, span: &Span) -> Option<()> {
        let limit = self.limits.value_bytes;
        if bytes > limit {
            let message = format!("the value has more than {limit} bytes after substitution");
            return self.stop(span, message);
        }
        Some(())
    }

    fn spend(
        &mut self,
        budget: for<'s> fn(&'s mut Scope<'a>) -> &'s mut Budget,
        amount: usize,
        span: &Span,
    ) -> Option<()> {
        if self.stopped {
            return None;
        }
        let budget = budget(self);
        let Some(left) = budget.left.checked_sub(amount) else {
            let message = format!("the job has more than {} {}", budget.limit, budget.what);
            return self.stop(span, message);
        };
        budget.left = left;
        Some(())
    }

    /// Reports that a limit is exceeded. Returns `None`.
    fn stop<T>(&mut self, span: &Span, message: String) -> Option<T> {
        self.stopped = true;
        self.sink.error(codes::SUBSTITUTION_LIMIT, span, |d| {
            d.message(message)
                .label("the limit is exceeded here")
                .help("the rest of the document was not substituted")
        });
        None
    }
}

fn value(text: &Text, written: &Spanned<String>) -> Value {
    let (text, deferred) = match text {
        Text::Known(text) => (text, false),
        Text::Deferred => (&written.value, true),
    };
    Value {
        text: Spanned::new(text.clone(), written.span.clone()),
        deferred,
    }
}
