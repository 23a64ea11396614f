//! The notification targets in the settings file: the tables of `[notify]`.

use batch_runtime::notify::NotificationEvent;
use batch_runtime::parameters::SecretReference;
use batch_runtime::xml::suggest::nearest;
use toml::Spanned;
use toml::de::DeValue;

use super::Origin;
use super::file::{File, NOTIFY};

const WEBHOOK: &str = "webhook";
const COMMAND: &str = "command";
const KEY: &str = "key";
const ON: &str = "on";
const JOBS: &str = "jobs";
const SKIPPED: &str = "skipped-more-than";
const KEYS: [&str; 6] = [WEBHOOK, COMMAND, KEY, ON, JOBS, SKIPPED];

/// A target, as it is configured.
#[derive(Clone, Debug)]
pub(crate) struct TargetSettings {
    pub(crate) name: String,
    pub(crate) origin: Origin,
    /// The URL of a webhook, or a reference to it.
    pub(crate) webhook: Option<String>,
    /// A reference to the key of the webhook.
    pub(crate) key: Option<String>,
    /// A program and its arguments.
    pub(crate) command: Option<Vec<String>>,
    pub(crate) events: Vec<NotificationEvent>,
    pub(crate) jobs: Vec<String>,
    pub(crate) skipped_more_than: Option<u64>,
}

impl File<'_> {
    /// Reads `[notify]`, a table of targets.
    pub(super) fn targets(
        &self,
        tables: &Spanned<DeValue<'_>>,
        problems: &mut Vec<String>,
    ) -> Vec<TargetSettings> {
        let DeValue::Table(targets) = tables.get_ref() else {
            let place = self.place(tables.span().start);
            problems.push(format!(
                "{place}: `{NOTIFY}` is not a table; expected tables such as `[{NOTIFY}.ops]`"
            ));
            return Vec::new();
        };
        let mut found = Vec::new();
        for (name, table) in targets {
            let mut target = TargetSettings {
                name: name.get_ref().to_string(),
                origin: self.origin(name),
                webhook: None,
                key: None,
                command: None,
                events: Vec::new(),
                jobs: Vec::new(),
                skipped_more_than: None,
            };
            let before = problems.len();
            self.target(&mut target, table, problems);
            if problems.len() == before {
                problems.extend(target.problem());
            }
            found.push(target);
        }
        found
    }

    fn target(&self, target: &mut TargetSettings, table: &Spanned<DeValue<'_>>, problems: &mut Vec<String>) {
        let DeValue::Table(entries) = table.get_ref() else {
            let place = self.place(table.span().start);
            let name = &target.name;
            problems.push(format!(
                "{place}: `{NOTIFY}.{name}` is not a table; expected `[{NOTIFY}.{name}]`"
            ));
            return;
        };
        for (key, value) in entries {
            let name = key.get_ref().as_ref();
            let read = match name {
                WEBHOOK => self.text_of(name, value).map(|text| target.webhook = Some(text)),
                KEY => self.text_of(name, value).map(|text| target.key = Some(text)),
                COMMAND => self
                    .texts_of(name, value)
                    .map(|texts| target.command = Some(texts)),
                JOBS => self.texts_of(name, value).map(|texts| target.jobs = texts),
                SKIPPED => self
                    .count_of(name, value)
                    .map(|count| target.skipped_more_than = Some(count)),
                ON => self.events_of(value).map(|events| target.events = events),
                _ => {
                    let place = self.place(key.span().start);
                    let help = match nearest(name, KEYS) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("expected one of {}", KEYS.join(", ")),
                    };
                    Err(format!(
                        "{place}: unknown setting `{name}` of a notification target; {help}"
                    ))
                }
            };
            problems.extend(read.err());
        }
    }

    pub(super) fn texts_of(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, String> {
        let texts = match value.get_ref() {
            DeValue::Array(values) => values.iter().map(|value| match value.get_ref() {
                DeValue::String(text) => Some(text.to_string()),
                _ => None,
            }),
            _ => return Err(self.not_texts(name, value)),
        };
        let texts: Option<Vec<String>> = texts.collect();
        texts
            .filter(|texts| !texts.is_empty())
            .ok_or_else(|| self.not_texts(name, value))
    }

    fn not_texts(&self, name: &str, value: &Spanned<DeValue<'_>>) -> String {
        let place = self.place(value.span().start);
        format!(
            "{place}: invalid value for `{name}`: expected a list of at least one string, such as [\"one\", \"two\"]"
        )
    }

    fn count_of(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Result<u64, String> {
        let text = self.text_of(name, value)?;
        text.parse().map_err(|_| {
            let place = self.place(value.span().start);
            format!("{place}: invalid value for `{name}`: expected a whole number")
        })
    }

    fn events_of(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<NotificationEvent>, String> {
        let names = self.texts_of(ON, value)?;
        let event = |name: &String| {
            let parsed = name.parse().ok().filter(|event| EVENTS.contains(event));
            parsed.ok_or_else(|| {
                let place = self.place(value.span().start);
                let known = EVENTS.map(NotificationEvent::as_str);
                let help = match nearest(name, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("expected {}", known.join(", ")),
                };
                format!("{place}: unknown event `{}`; {help}", name.escape_debug())
            })
        };
        names.iter().map(event).collect()
    }
}

/// The events that a target can name.
const EVENTS: [NotificationEvent; 6] = [
    NotificationEvent::Completed,
    NotificationEvent::Stopped,
    NotificationEvent::Failed,
    NotificationEvent::TakenOver,
    NotificationEvent::Overdue,
    NotificationEvent::HeartbeatMissed,
];

impl TargetSettings {
    /// Returns what is wrong with it as a whole.
    fn problem(&self) -> Option<String> {
        let problem = match (&self.webhook, &self.command) {
            (None, None) => format!("has neither `{WEBHOOK}` nor `{COMMAND}`"),
            (Some(_), Some(_)) => format!("has both `{WEBHOOK}` and `{COMMAND}`; make it two targets"),
            (None, Some(_)) if self.key.is_some() => {
                format!("has a `{KEY}`, which only a `{WEBHOOK}` can have")
            }
            _ if self.events.is_empty() && self.skipped_more_than.is_none() => {
                let known = EVENTS.map(NotificationEvent::as_str).join(", ");
                format!("names no event; set `{ON}` to some of {known}, or `{SKIPPED}`")
            }
            _ => return None,
        };
        Some(format!(
            "{}: the notification target `{}` {problem}",
            self.origin, self.name
        ))
    }

    /// Returns a problem with its place and its name.
    pub(crate) fn problem_of(&self, problem: &str) -> String {
        format!(
            "{}: the notification target `{}`: {problem}",
            self.origin, self.name
        )
    }

    /// Returns what it does, and whether its key can be read, without the key and the URL, which may contain a token.
    pub(super) fn shown(&self) -> String {
        let mut on: Vec<String> = self.events.iter().map(ToString::to_string).collect();
        on.extend(
            self.skipped_more_than
                .map(|items| format!("skipped more than {items}")),
        );
        let through = match (&self.command, &self.key) {
            (Some(command), _) => format!("{COMMAND} {}", command.first().map_or("", String::as_str)),
            (None, Some(key)) => {
                let found = key.parse().is_ok_and(|key: SecretReference| key.read().is_ok());
                let found = if found { "found" } else { "not found" };
                format!("{WEBHOOK}, signed ({KEY} {found})")
            }
            (None, None) => WEBHOOK.to_owned(),
        };
        let jobs = match self.jobs.is_empty() {
            true => String::new(),
            false => format!(" of {}", self.jobs.join(", ")),
        };
        format!("{through}: {}{jobs}", on.join(", "))
    }
}
