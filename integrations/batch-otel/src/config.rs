//! The variables `OTEL_*` that the SDK does not read, or reads without a message, and `TRACEPARENT`.

use std::time::Duration;

use opentelemetry::trace::SpanContext;

use crate::ids;

/// The time limit of a request, as the specification has it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What is sent to a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Traces,
    Metrics,
    Logs,
}

impl Signal {
    const ALL: [Self; 3] = [Self::Traces, Self::Metrics, Self::Logs];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }
}

/// The configuration of the environment.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// The signals that are sent, with the time limit of a request.
    pub(crate) signals: Vec<(Signal, Duration)>,
    /// The span that started this process.
    pub(crate) parent: Option<SpanContext>,
    /// The file of certificates that are trusted instead of the system's.
    pub(crate) certificate: Option<String>,
    /// What is ignored, and why.
    pub(crate) problems: Vec<String>,
}

impl Config {
    /// Reads the variables by `variable`, which returns `None` for one that is not set.
    pub(crate) fn read(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        // An empty variable is one that is not set.
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let mut config = Self::default();
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
            return config;
        }
        for signal in Signal::ALL {
            if config.sends(signal, &variable) {
                let timeout = config.timeout(signal, &variable);
                config.signals.push((signal, timeout));
            }
        }
        if !config.signals.is_empty() {
            config.certificate = variable("OTEL_EXPORTER_OTLP_CERTIFICATE");
            for name in [
                "OTEL_EXPORTER_OTLP_CLIENT_KEY",
                "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
            ] {
                if variable(name).is_some() {
                    let problem = format!("ignoring {name}: client certificates are not supported");
                    config.problems.push(problem);
                }
            }
            config.read_parent(&variable);
        }
        config
    }

    /// Returns whether a signal is sent. One whose exporter is not named is sent if an endpoint is configured.
    fn sends(&mut self, signal: Signal, variable: &dyn Fn(&str) -> Option<String>) -> bool {
        let upper = signal.as_str().to_uppercase();
        let names = |suffix: &str| {
            [
                format!("OTEL_EXPORTER_OTLP_{upper}_{suffix}"),
                format!("OTEL_EXPORTER_OTLP_{suffix}"),
            ]
        };
        let first = |names: [String; 2]| names.into_iter().find_map(|name| Some((variable(&name)?, name)));
        let exporter = format!("OTEL_{upper}_EXPORTER");
        let is_wanted = match variable(&exporter) {
            None => first(names("ENDPOINT")).is_some(),
            Some(value) => {
                let mut exporters = value.split(',').map(str::trim);
                let is_otlp = exporters.clone().any(|name| name == "otlp");
                if !is_otlp && !exporters.any(|name| name == "none") {
                    self.problems.push(format!(
                        "ignoring {exporter}=`{}`: unknown exporter; choose `otlp` or `none`",
                        value.escape_debug()
                    ));
                }
                is_otlp
            }
        };
        match first(names("PROTOCOL")).filter(|_| is_wanted) {
            Some((value, name)) if value.trim() != "http/protobuf" => {
                self.problems.push(format!(
                    "no {} are sent: {name} is `{}`, and this program speaks only `http/protobuf`; set it, and the port of the collector \
                     for it, which is usually 4318",
                    signal.as_str(),
                    value.escape_debug()
                ));
                false
            }
            _ => is_wanted,
        }
    }

    /// Returns the time limit of a request. The SDK applies it only to its own HTTP clients.
    fn timeout(&mut self, signal: Signal, variable: &dyn Fn(&str) -> Option<String>) -> Duration {
        let upper = signal.as_str().to_uppercase();
        for name in [
            format!("OTEL_EXPORTER_OTLP_{upper}_TIMEOUT"),
            "OTEL_EXPORTER_OTLP_TIMEOUT".to_owned(),
        ] {
            let Some(value) = variable(&name) else { continue };
            match value.trim().parse() {
                Ok(millis) if millis > 0 => return Duration::from_millis(millis),
                _ => self.problems.push(format!(
                    "ignoring {name}=`{}`: expected a number of milliseconds, at least 1",
                    value.escape_debug()
                )),
            }
        }
        TIMEOUT
    }

    fn read_parent(&mut self, variable: &dyn Fn(&str) -> Option<String>) {
        let propagators = variable("OTEL_PROPAGATORS");
        if propagators.is_some_and(|names| !names.split(',').any(|name| name.trim() == "tracecontext")) {
            return;
        }
        let Some(traceparent) = variable("TRACEPARENT") else {
            return;
        };
        self.parent = ids::parsed(traceparent.trim(), variable("TRACESTATE").as_deref());
        if self.parent.is_none() {
            self.problems.push(format!(
                "ignoring TRACEPARENT=`{}`: expected `00-TRACE-SPAN-FLAGS` with 32, 16 and 2 lowercase hexadecimal digits; jobs start traces \
                 of their own",
                traceparent.escape_debug()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn read(variables: &[(&str, &str)]) -> Config {
        Config::read(&|name| {
            let found = variables.iter().find(|(of, _)| *of == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn check(variables: &[(&str, &str)], signals: &str, problems: &[&str]) {
        let config = read(variables);
        let sent: Vec<_> = config.signals.iter().map(|(signal, _)| signal.as_str()).collect();
        assert_eq!(sent.join(" "), signals, "{variables:?}");
        assert_eq!(config.problems, problems, "{variables:?}");
    }

    // Spec: OTEL-01
    #[test]
    fn an_endpoint_configures_all_signals() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
        check(&[], "", &[]);
        check(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], "", &[]);
        check(&[endpoint], "traces metrics logs", &[]);
        check(
            &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://x/v1/traces")],
            "traces",
            &[],
        );
        check(&[endpoint, ("OTEL_METRICS_EXPORTER", "none")], "traces logs", &[]);
        check(&[("OTEL_LOGS_EXPORTER", "console,otlp")], "logs", &[]);
        check(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")], "", &[]);
        check(
            &[endpoint, ("OTEL_TRACES_EXPORTER", "zipkin")],
            "metrics logs",
            &["ignoring OTEL_TRACES_EXPORTER=`zipkin`: unknown exporter; choose `otlp` or `none`"],
        );
    }

    // Spec: OTEL-01
    #[test]
    fn other_protocols_are_rejected() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4317");
        check(
            &[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")],
            "traces metrics logs",
            &[],
        );
        check(
            &[
                endpoint,
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
                ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc"),
            ],
            "traces metrics",
            &[
                "no logs are sent: OTEL_EXPORTER_OTLP_LOGS_PROTOCOL is `grpc`, and this program speaks only `http/protobuf`; set it, \
                 and the port of the collector for it, which is usually 4318",
            ],
        );
    }

    // Spec: OTEL-01
    #[test]
    fn a_timeout_is_that_of_the_signal_first() {
        let config = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1500"),
            ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "soon"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2000"),
        ]);
        let millis: Vec<_> = config
            .signals
            .iter()
            .map(|(_, limit)| limit.as_millis())
            .collect();
        assert_eq!(millis, [1_500, 2_000, 2_000]);
        assert_eq!(
            config.problems,
            [
                "ignoring OTEL_EXPORTER_OTLP_METRICS_TIMEOUT=`soon`: expected a number of milliseconds, at least 1"
            ]
        );
    }

    // Spec: OTEL-05
    #[test]
    fn a_malformed_parent_is_a_problem() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
        let parent = |value| read(&[endpoint, ("TRACEPARENT", value)]);
        assert!(parent(TRACEPARENT).parent.is_some());
        assert!(parent(TRACEPARENT).problems.is_empty());
        let malformed = parent("00-\u{1b}[31m");
        assert_eq!(malformed.parent, None);
        assert!(malformed.problems[0].starts_with("ignoring TRACEPARENT=`00-\\u{1b}[31m`: expected"));
        let others = [endpoint, ("TRACEPARENT", TRACEPARENT), ("OTEL_PROPAGATORS", "b3")];
        assert_eq!(read(&others).parent, None);
        assert!(
            read(&[("TRACEPARENT", "x")]).problems.is_empty(),
            "nothing is traced"
        );
    }
}
