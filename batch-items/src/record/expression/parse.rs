//! The parser of expressions.

use batch_runtime::xml::suggest::did_you_mean;
use regex::{Regex, RegexBuilder};

use super::functions::FUNCTIONS;
use super::json_value;
use super::number::Number;
use super::term::{
    AT_LEAST, AT_MOST, Arithmetic, Comparison, EQUAL, Function, GREATER, Kind, LESS, Term, Total, TotalKind,
    Type, UNEQUAL, total_field,
};
use super::token::{Token, TokenKind, place, tokens};
use crate::formats;
use crate::record::decimal;
use crate::record::field::Field;
use crate::record::value::Value;

/// Words that are not fields. A field with such a name is in double quotes.
const KEYWORDS: [&str; 19] = [
    "and", "or", "not", "is", "null", "true", "false", "in", "between", "like", "ilike", "case", "when",
    "then", "else", "end", "cast", "as", "distinct",
];

/// Deeper ones are mistakes, and each level takes a part of the stack.
const DEEPEST: usize = 100;

const COMPARISONS: [(&str, Comparison); 7] = [
    ("<=", AT_MOST),
    (">=", AT_LEAST),
    ("<>", UNEQUAL),
    ("!=", UNEQUAL),
    ("=", EQUAL),
    ("<", LESS),
    (">", GREATER),
];

const PATTERNS: [(&str, bool, bool); 4] = [
    // The operator, whether it ignores case, and whether the pattern must not match.
    ("~", false, false),
    ("~*", true, false),
    ("!~", false, true),
    ("!~*", true, true),
];

const SUMS: [(&str, Arithmetic); 2] = [("+", Arithmetic::Add), ("-", Arithmetic::Subtract)];

const PRODUCTS: [(&str, Arithmetic); 3] = [
    ("*", Arithmetic::Multiply),
    ("/", Arithmetic::Divide),
    ("%", Arithmetic::Remainder),
];

const CAST_TYPES: [(&str, Type); 6] = [
    ("int", Type::Integer),
    ("integer", Type::Integer),
    ("decimal", Type::Number),
    ("numeric", Type::Number),
    ("text", Type::Text),
    ("boolean", Type::Condition),
];

pub(super) struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    /// The totals and the fields outside of them; `None` where there are no totals.
    totals: Option<(Vec<Total>, Vec<String>)>,
}

type Parsed<T = Term> = Result<T, String>;

impl<'s> Parser<'s> {
    pub(super) fn new(source: &'s str) -> Parsed<Self> {
        Ok(Self {
            source,
            tokens: tokens(source)?,
            next: 0,
            depth: 0,
            totals: None,
        })
    }

    /// Creates the parser of an expression with totals.
    pub(super) fn with_totals(source: &'s str) -> Parsed<Self> {
        Ok(Self {
            totals: Some(Default::default()),
            ..Self::new(source)?
        })
    }

    /// Returns the totals, and the fields outside of them.
    pub(super) fn into_totals(self) -> (Vec<Total>, Vec<String>) {
        self.totals.unwrap_or_default()
    }

    /// Parses an expression.
    pub(super) fn expression(&mut self) -> Parsed {
        self.nested(Self::alternatives)
    }

    /// Parses a list that is separated by commas, up to the end.
    pub(super) fn list<T>(&mut self, mut element: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut elements = vec![element(self)?];
        while self.takes(",") {
            elements.push(element(self)?);
        }
        self.end().map(|()| elements)
    }

    /// Parses `name =`.
    pub(super) fn assigned(&mut self) -> Parsed<String> {
        let name = match &self.peek().kind {
            TokenKind::Word(name, false) | TokenKind::Name(name, false) => name.clone(),
            TokenKind::Word(name, true) | TokenKind::Name(name, true) => {
                return Err(self.expected(&format!("`{name}` without `?`, because it is computed")));
            }
            _ => return Err(self.expected("`name = expression`")),
        };
        self.next += 1;
        if !self.takes("=") {
            return Err(self.expected(&format!("`=` after `{name}`")));
        }
        Ok(name)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.peek().kind == TokenKind::End
    }

    pub(super) fn end(&self) -> Parsed<()> {
        let token = self.peek();
        match &token.kind {
            TokenKind::End => Ok(()),
            TokenKind::Symbol(symbol) if COMPARISONS.iter().any(|(text, _)| text == symbol) => Err(self
                .wrong(
                    token.start,
                    "a comparison does not continue; join two of them by `and`,",
                )),
            _ => Err(self.expected("an operator or the end")),
        }
    }

    fn alternatives(&mut self) -> Parsed {
        self.joined("or", Kind::Or, Self::conjunction)
    }

    fn conjunction(&mut self) -> Parsed {
        self.joined("and", Kind::And, Self::negation)
    }

    /// Parses conditions that a word joins.
    fn joined(&mut self, word: &str, join: fn(Vec<Term>) -> Kind, part: fn(&mut Self) -> Parsed) -> Parsed {
        let mut terms = vec![part(self)?];
        while self.takes_word(word) {
            terms.push(part(self)?);
        }
        if terms.len() == 1 {
            return Ok(terms.remove(0));
        }
        terms
            .iter()
            .try_for_each(|term| self.needs(term, Type::Condition))?;
        self.ended(terms[0].at.start, join(terms))
    }

    fn negation(&mut self) -> Parsed {
        let start = self.peek().start;
        if !self.takes_word("not") {
            return self.comparison();
        }
        self.nested(|parser| {
            let operand = parser.negation()?;
            parser.needs(&operand, Type::Condition)?;
            parser.ended(start, Kind::Not(Box::new(operand)))
        })
    }

    fn comparison(&mut self) -> Parsed {
        let one = self.concatenation()?;
        let start = one.at.start;
        if let Some(comparison) = self.symbol_of(&COMPARISONS.map(|(symbol, value)| (symbol, value))) {
            let other = self.concatenation()?;
            self.comparable(&one, &other)?;
            return self.binary(|one, other| Kind::Compare(comparison, one, other), one, other);
        }
        if let Some((ignores_case, is_negated)) =
            self.symbol_of(&PATTERNS.map(|(symbol, case, negated)| (symbol, (case, negated))))
        {
            let at = self.peek().start;
            let pattern = self.pattern("a regular expression in single quotes")?;
            let regex = self.regex(&pattern, at, ignores_case)?;
            return self.matched(one, regex, is_negated);
        }
        if self.takes_word("is") {
            return self.test(one);
        }
        let is_negated = self.takes_word("not");
        let kind = if self.takes_word("in") {
            Kind::In(Box::new(one), self.values()?)
        } else if self.takes_word("between") {
            let low = self.concatenation()?;
            if !self.takes_word("and") {
                return Err(self.expected("`and` between the limits"));
            }
            let high = self.concatenation()?;
            self.comparable(&one, &low)?;
            self.comparable(&one, &high)?;
            Kind::Between(Box::new(one), Box::new(low), Box::new(high))
        } else if let Some(ignores_case) = self.like() {
            let at = self.peek().start;
            let pattern = self.pattern("a pattern in single quotes, such as `'A%'`")?;
            let Some(pattern) = like_as_regex(&pattern) else {
                return Err(self.wrong(at, "a backslash in a pattern precedes `%`, `_` or a backslash,"));
            };
            let regex = self.regex(&pattern, at, ignores_case)?;
            return self.matched(one, regex, is_negated);
        } else if is_negated {
            return Err(self.expected("`in`, `between` or `like` after `not`"));
        } else {
            return Ok(one);
        };
        let term = self.ended(start, kind)?;
        match is_negated {
            true => self.negated(term),
            false => Ok(term),
        }
    }

    /// Returns whether `like` ignores case, if it is next.
    fn like(&mut self) -> Option<bool> {
        if self.takes_word("like") {
            return Some(false);
        }
        self.takes_word("ilike").then_some(true)
    }

    /// Parses what follows `is`.
    fn test(&mut self, one: Term) -> Parsed {
        let start = one.at.start;
        let is_negated = self.takes_word("not");
        let term = if self.takes_word("null") {
            self.ended(start, Kind::IsNull(Box::new(one)))?
        } else if self.takes_word("distinct") {
            if !self.takes_word("from") {
                return Err(self.expected("`from` after `is distinct`"));
            }
            let other = self.concatenation()?;
            self.binary(Kind::IsDistinct, one, other)?
        } else {
            return Err(self.expected("`null`, `not null` or `distinct from` after `is`"));
        };
        match is_negated {
            true => self.negated(term),
            false => Ok(term),
        }
    }

    /// Parses the values of `in`.
    fn values(&mut self) -> Parsed<Vec<Term>> {
        if !self.takes("(") {
            return Err(self.expected("`(` after `in`"));
        }
        let mut values = Vec::new();
        loop {
            let value = self.expression()?;
            if matches!(value.kind, Kind::Null) {
                return Err(self.wrong(value.at.start, "nothing equals null; test `is null`,"));
            }
            values.push(value);
            if !self.takes(",") {
                self.closes()?;
                return Ok(values);
            }
        }
    }

    fn pattern(&mut self, expected: &str) -> Parsed<String> {
        match &self.peek().kind {
            TokenKind::Text(pattern) => {
                let pattern = pattern.clone();
                self.next += 1;
                Ok(pattern)
            }
            _ => Err(self.expected(expected)),
        }
    }

    /// Compiles a pattern at a place of the expression.
    fn regex(&self, pattern: &str, at: usize, ignores_case: bool) -> Parsed<Regex> {
        RegexBuilder::new(pattern)
            .case_insensitive(ignores_case)
            .dot_matches_new_line(true)
            .build()
            .map_err(|error| {
                let error = error.to_string();
                let cause = error.lines().last().unwrap_or_default();
                let cause = cause.strip_prefix("error: ").unwrap_or(cause);
                self.wrong(at, &format!("the regular expression `{pattern}`: {cause},"))
            })
    }

    fn matched(&self, one: Term, regex: Regex, is_negated: bool) -> Parsed {
        let term = self.ended(one.at.start, Kind::Matches(Box::new(one), regex))?;
        match is_negated {
            true => self.negated(term),
            false => Ok(term),
        }
    }

    fn concatenation(&mut self) -> Parsed {
        let mut terms = vec![self.sum()?];
        while self.takes("||") {
            terms.push(self.sum()?);
        }
        match terms.len() {
            1 => Ok(terms.remove(0)),
            _ => self.ended(terms[0].at.start, Kind::Concat(terms)),
        }
    }

    fn sum(&mut self) -> Parsed {
        let mut term = self.product()?;
        while let Some(operation) = self.symbol_of(&SUMS) {
            let other = self.product()?;
            term = self.calculated(operation, term, other)?;
        }
        Ok(term)
    }

    fn product(&mut self) -> Parsed {
        let mut term = self.signed()?;
        while let Some(operation) = self.symbol_of(&PRODUCTS) {
            let other = self.signed()?;
            term = self.calculated(operation, term, other)?;
        }
        Ok(term)
    }

    fn calculated(&self, operation: Arithmetic, one: Term, other: Term) -> Parsed {
        for operand in [&one, &other] {
            self.needs(operand, Type::Number)?;
            if matches!(operand.kind, Kind::Large(_)) {
                return Err(self.wrong(operand.at.start, "expected a number of at most 38 digits"));
            }
        }
        self.binary(|one, other| Kind::Arithmetic(operation, one, other), one, other)
    }

    fn signed(&mut self) -> Parsed {
        let start = self.peek().start;
        if !self.takes("-") {
            return self.primary();
        }
        self.nested(|parser| {
            let operand = parser.signed()?;
            parser.needs(&operand, Type::Number)?;
            let kind = match operand.kind {
                Kind::Number(number) => Kind::Number(number.negated()),
                Kind::Large(Value::Decimal(digits)) => {
                    Kind::Large(Value::Decimal(match digits.strip_prefix('-') {
                        Some(digits) => digits.to_owned(),
                        None => format!("-{digits}"),
                    }))
                }
                _ => Kind::Negate(Box::new(operand)),
            };
            parser.ended(start, kind)
        })
    }

    fn primary(&mut self) -> Parsed {
        let Token { start, .. } = *self.peek();
        if self.takes("(") {
            let mut term = self.expression()?;
            self.closes()?;
            term.at = start..self.tokens[self.next - 1].end;
            return Ok(term);
        }
        let kind = match &self.peek().kind {
            TokenKind::Text(text) => Kind::Text(text.clone()),
            TokenKind::Name(name, may_lack) => {
                let (name, may_lack) = (name.clone(), *may_lack);
                self.field(name, may_lack)
            }
            TokenKind::Number(digits) => match Number::parse(digits) {
                Some(number) => Kind::Number(number),
                None => Kind::Large(Value::Decimal(digits.clone())),
            },
            TokenKind::Word(word, may_lack) => {
                let (word, may_lack) = (word.clone(), *may_lack);
                return self.word(&word, may_lack);
            }
            _ => return Err(self.expected("a value")),
        };
        self.next += 1;
        self.ended(start, kind)
    }

    fn field(&mut self, name: String, may_lack: bool) -> Kind {
        if let Some((_, fields)) = &mut self.totals
            && !fields.contains(&name)
        {
            fields.push(name.clone());
        }
        Kind::Field(Field::new(name, may_lack))
    }

    /// Parses the arguments of a total, which becomes a field.
    fn total(&mut self, name: &str, kind: TotalKind) -> Parsed {
        let start = self.peek().start;
        // A total of totals has no meaning.
        let Some((mut totals, fields)) = self.totals.take() else {
            let cause = format!(
                "`{name}` is a total: use it in `expect` or in `set` of `recordAggregateProcessor`, and not inside another total,"
            );
            return Err(self.wrong(start, &cause));
        };
        self.next += 2;
        let argument = match self.takes(")") {
            true => None,
            false => {
                let argument = self.expression()?;
                if let Some(expected) = kind.takes() {
                    self.needs(&argument, expected)?;
                }
                self.closes()?;
                Some(argument)
            }
        };
        if let Some(mistake) = kind.mistake(argument.is_some()) {
            return Err(self.wrong(start, &format!("{mistake},")));
        }
        let name = self.source[start..self.tokens[self.next - 1].end].to_owned();
        if totals.iter().all(|total| total.name != name) {
            let name = name.clone();
            totals.push(Total { name, kind, argument });
        }
        self.totals = Some((totals, fields));
        self.ended(start, Kind::Field(Field::new(total_field(&name), false)))
    }

    /// Parses a word: a literal, `case`, `cast`, a function or a field.
    fn word(&mut self, word: &str, may_lack: bool) -> Parsed {
        let start = self.peek().start;
        let lower = word.to_ascii_lowercase();
        let is_call =
            matches!(self.tokens.get(self.next + 1), Some(next) if next.kind == TokenKind::Symbol("("));
        let kind = match lower.as_str() {
            keyword if may_lack && KEYWORDS.contains(&keyword) => {
                return Err(self.expected(&format!("\"{word}\"? for a field of this name")));
            }
            "null" => Kind::Null,
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            "case" => return self.case(),
            "cast" if is_call => return self.cast(),
            keyword if KEYWORDS.contains(&keyword) => {
                return Err(self.expected(&format!("a value, or \"{word}\" for a field of this name")));
            }
            function if is_call => return self.call(function),
            _ => self.field(word.to_owned(), may_lack),
        };
        self.next += 1;
        self.ended(start, kind)
    }

    /// `case when condition then value .. else value end`
    fn case(&mut self) -> Parsed {
        let start = self.peek().start;
        self.next += 1;
        let mut branches = Vec::new();
        while self.takes_word("when") {
            let condition = self.expression()?;
            self.needs(&condition, Type::Condition)?;
            if !self.takes_word("then") {
                return Err(self.expected("`then`"));
            }
            branches.push((condition, self.expression()?));
        }
        if branches.is_empty() {
            return Err(self.expected("`when` after `case`"));
        }
        let otherwise = match self.takes_word("else") {
            true => Some(Box::new(self.expression()?)),
            false => None,
        };
        if !self.takes_word("end") {
            return Err(self.expected("`when`, `else` or `end`"));
        }
        self.ended(start, Kind::Case(branches, otherwise))
    }

    /// `cast(value as type)`
    fn cast(&mut self) -> Parsed {
        let start = self.peek().start;
        self.next += 2;
        let operand = self.expression()?;
        if !self.takes_word("as") {
            return Err(self.expected("`as` and a type"));
        }
        let ty = match &self.peek().kind {
            TokenKind::Word(word, false) => CAST_TYPES
                .iter()
                .find(|(name, _)| word.eq_ignore_ascii_case(name)),
            _ => None,
        };
        let Some((_, ty)) = ty else {
            return Err(self.expected("one of the types `int`, `decimal`, `text` and `boolean`"));
        };
        self.next += 1;
        self.closes()?;
        self.ended(start, Kind::Cast(Box::new(operand), *ty))
    }

    fn call(&mut self, name: &str) -> Parsed {
        if let Some(kind) = TotalKind::of(name) {
            return self.total(name, kind);
        }
        let start = self.peek().start;
        let function: &Function = FUNCTIONS
            .iter()
            .find(|function| function.name == name)
            .ok_or_else(|| {
                let hint = did_you_mean(name, FUNCTIONS.iter().map(|function| function.name));
                self.wrong(start, &format!("there is no function `{name}`{hint},"))
            })?;
        self.next += 2;
        let mut arguments = Vec::new();
        while !self.takes(")") {
            if !arguments.is_empty() && !self.takes(",") {
                return Err(self.expected("`,` or `)`"));
            }
            arguments.push(self.expression()?);
        }
        if !function.arguments.contains(&arguments.len()) {
            let (least, most) = (function.arguments.start(), function.arguments.end());
            let expected = match least == most {
                true => least.to_string(),
                false => format!("{least} to {most}"),
            };
            let found = arguments.len();
            let noun = if expected == "1" { "argument" } else { "arguments" };
            return Err(self.wrong(start, &format!("`{name}` takes {expected} {noun}, not {found},")));
        }
        let pattern = arguments
            .get(1)
            .filter(|_| ["date", "format_date", "json_value"].contains(&name));
        if let Some(Term {
            kind: Kind::Text(pattern),
            at,
            ..
        }) = pattern
        {
            let checked = match name {
                "date" => formats::check_pattern(pattern),
                "json_value" => json_value::check_path(pattern),
                _ => formats::part_of_date(pattern, "2026-12-31").map(drop),
            };
            checked.map_err(|cause| self.wrong(at.start, &cause))?;
        }
        self.ended(start, Kind::Call(function, arguments))
    }

    fn nested(&mut self, parse: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.too_deep());
        }
        let term = parse(self);
        self.depth -= 1;
        term
    }

    fn too_deep(&self) -> String {
        self.wrong(
            self.peek().start,
            &format!("the expression has more than {DEEPEST} levels; compute a part of it in another field,"),
        )
    }

    fn closes(&mut self) -> Parsed<()> {
        match self.takes(")") {
            true => Ok(()),
            false => Err(self.expected("`)`")),
        }
    }

    /// Checks the type of a part, where its form shows it. A text that a function returns may be a number.
    pub(super) fn needs(&self, term: &Term, expected: Type) -> Parsed<()> {
        match self.total_type(term).or_else(|| type_of(term)) {
            _ if matches!(term.kind, Kind::Null) => {
                Err(self.wrong(term.at.start, "null is not a value here,"))
            }
            Some(Type::Text) if expected == Type::Number && !matches!(term.kind, Kind::Text(_)) => Ok(()),
            Some(found) if found != expected => Err(self.wrong(
                term.at.start,
                &format!(
                    "expected {}, found {}, `{}`,",
                    if expected == Type::Condition {
                        "a condition"
                    } else {
                        expected.name()
                    },
                    if found == Type::Condition {
                        "a condition"
                    } else {
                        found.name()
                    },
                    &self.source[term.at.clone()]
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the type of a total.
    fn total_type(&self, term: &Term) -> Option<Type> {
        let Kind::Field(field) = &term.kind else {
            return None;
        };
        let (totals, _) = self.totals.as_ref()?;
        let total = totals
            .iter()
            .find(|total| total_field(&total.name) == field.name)?;
        match total.kind {
            TotalKind::Every => Some(Type::Condition),
            TotalKind::Count | TotalKind::Sum | TotalKind::Skipped => Some(Type::Number),
            TotalKind::Min | TotalKind::Max => None,
        }
    }

    fn comparable(&self, one: &Term, other: &Term) -> Parsed<()> {
        if let Some(null) = [one, other]
            .into_iter()
            .find(|term| matches!(term.kind, Kind::Null))
        {
            return Err(self.wrong(
                null.at.start,
                "nothing equals null; test `is null` or `is not null`,",
            ));
        }
        for (one, other) in [(one, other), (other, one)] {
            let is_literal = |term: &Term| match &term.kind {
                Kind::Text(text) => !decimal::is_number(text.trim_ascii()),
                _ => false,
            };
            match type_of(one) {
                Some(Type::Condition) => self.needs(other, Type::Condition)?,
                Some(Type::Number) if is_literal(other) => self.needs(other, Type::Number)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.next]
    }

    fn takes(&mut self, symbol: &'static str) -> bool {
        let is_next = self.peek().kind == TokenKind::Symbol(symbol);
        self.next += usize::from(is_next);
        is_next
    }

    fn takes_word(&mut self, keyword: &str) -> bool {
        let is_next =
            matches!(&self.peek().kind, TokenKind::Word(word, false) if word.eq_ignore_ascii_case(keyword));
        self.next += usize::from(is_next);
        is_next
    }

    /// Takes one of these symbols and returns its value.
    fn symbol_of<T: Copy>(&mut self, symbols: &[(&'static str, T)]) -> Option<T> {
        let found = symbols
            .iter()
            .find(|(symbol, _)| self.peek().kind == TokenKind::Symbol(symbol))?;
        self.next += 1;
        Some(found.1)
    }

    /// Returns the part from a place to the last token.
    fn ended(&self, start: usize, kind: Kind) -> Parsed {
        let depth = kind.depth();
        if depth > DEEPEST {
            return Err(self.too_deep());
        }
        Ok(Term {
            kind,
            at: start..self.tokens[self.next - 1].end,
            depth,
        })
    }

    /// Returns the condition that another one does not hold.
    fn negated(&self, term: Term) -> Parsed {
        self.ended(term.at.start, Kind::Not(Box::new(term)))
    }

    fn binary(&self, join: impl FnOnce(Box<Term>, Box<Term>) -> Kind, one: Term, other: Term) -> Parsed {
        self.ended(one.at.start, join(Box::new(one), Box::new(other)))
    }

    fn expected(&self, what: &str) -> String {
        let token = self.peek();
        let found = match token.kind {
            TokenKind::End => "the end".to_owned(),
            _ => format!("`{}`", &self.source[token.start..token.end]),
        };
        self.wrong(token.start, &format!("expected {what}, found {found}"))
    }

    fn wrong(&self, at: usize, cause: &str) -> String {
        format!("{cause}{}", place(self.source, at))
    }
}

/// Returns the type of a part, if its form shows it.
fn type_of(term: &Term) -> Option<Type> {
    match &term.kind {
        Kind::Null | Kind::Field(_) | Kind::Case(..) => None,
        Kind::Number(_) | Kind::Large(_) | Kind::Negate(_) | Kind::Arithmetic(..) => Some(Type::Number),
        Kind::Text(_) | Kind::Concat(..) => Some(Type::Text),
        Kind::Cast(_, Type::Integer) => Some(Type::Number),
        Kind::Cast(_, ty) => Some(*ty),
        Kind::Call(function, _) => function.returns,
        _ => Some(Type::Condition),
    }
}

/// Returns the regular expression of a pattern of `like`; `None` if a backslash is not before `%`, `_` or another backslash.
fn like_as_regex(pattern: &str) -> Option<String> {
    let (mut regex, mut characters) = (String::from("^"), pattern.chars());
    while let Some(character) = characters.next() {
        let literal = match character {
            '%' => {
                regex.push_str(".*");
                continue;
            }
            '_' => {
                regex.push('.');
                continue;
            }
            '\\' => characters.next().filter(|next| "%_\\".contains(*next))?,
            other => other,
        };
        regex.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4])));
    }
    Some(regex + "$")
}
