//! The instruments of the crate `metrics`, which the runtime and its programs use, as instruments of OpenTelemetry.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use opentelemetry::{KeyValue, metrics as otel};

/// The histograms of the runtime, which are durations.
const DURATIONS: [&str; 3] = [
    "spring.batch.job",
    "spring.batch.step",
    "spring.batch.chunk.write",
];

/// Their buckets in seconds: from the write of a chunk to a job of a day.
const SECONDS: [f64; 17] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 7_200.0,
    86_400.0,
];

/// Passes the metrics of the crate `metrics` to a meter. Each series has one state, however often it is registered.
pub(crate) struct OtelRecorder {
    meter: otel::Meter,
    counters: Series<CounterState>,
    gauges: Series<GaugeState>,
    histograms: Series<HistogramState>,
    units: Mutex<HashMap<String, Unit>>,
}

type Series<S> = Mutex<HashMap<Key, Arc<S>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn series<S>(all: &Series<S>, key: &Key, create: impl FnOnce(Vec<KeyValue>) -> S) -> Arc<S> {
    let create = || {
        let labels = key.labels();
        let attributes = labels.map(|label| KeyValue::new(label.key().to_owned(), label.value().to_owned()));
        Arc::new(create(attributes.collect()))
    };
    Arc::clone(lock(all).entry(key.clone()).or_insert_with(create))
}

impl OtelRecorder {
    pub(crate) fn new(meter: otel::Meter) -> Self {
        Self {
            meter,
            counters: Mutex::default(),
            gauges: Mutex::default(),
            histograms: Mutex::default(),
            units: Mutex::default(),
        }
    }

    fn describe(&self, name: &KeyName, unit: Option<Unit>) {
        if let Some(unit) = unit {
            lock(&self.units).insert(name.as_str().to_owned(), unit);
        }
    }

    /// Returns the unit of an instrument, in the notation of UCUM.
    fn unit(&self, key: &Key) -> &'static str {
        match lock(&self.units).get(key.name()) {
            _ if DURATIONS.contains(&key.name()) => "s",
            Some(Unit::Count) | None => "",
            Some(Unit::Percent) => "%",
            Some(Unit::Bytes) => "By",
            Some(unit) => unit.as_canonical_label(),
        }
    }
}

impl Recorder for OtelRecorder {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(&name, unit);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(&name, unit);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(&name, unit);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(series(&self.counters, key, |attributes| {
            let counter = self.meter.u64_counter(key.name().to_owned());
            let counter = counter.with_unit(self.unit(key)).build();
            // The series is sent even if nothing is counted.
            counter.add(0, &attributes);
            CounterState {
                counter,
                attributes,
                total: AtomicU64::new(0),
            }
        }))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(series(&self.gauges, key, |attributes| GaugeState {
            gauge: self
                .meter
                .f64_gauge(key.name().to_owned())
                .with_unit(self.unit(key))
                .build(),
            attributes,
            value: Mutex::new(0.0),
        }))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(series(&self.histograms, key, |attributes| {
            let histogram = self.meter.f64_histogram(key.name().to_owned());
            let histogram = histogram.with_unit(self.unit(key));
            HistogramState {
                histogram: match DURATIONS.contains(&key.name()) {
                    true => histogram.with_boundaries(SECONDS.to_vec()).build(),
                    false => histogram.build(),
                },
                attributes,
            }
        }))
    }
}

struct CounterState {
    counter: otel::Counter<u64>,
    attributes: Vec<KeyValue>,
    total: AtomicU64,
}

impl CounterState {
    fn add(&self, value: u64) {
        // Most chunks skip and filter nothing.
        if value > 0 {
            self.counter.add(value, &self.attributes);
        }
    }
}

impl CounterFn for CounterState {
    fn increment(&self, value: u64) {
        self.total.fetch_add(value, Ordering::Relaxed);
        self.add(value);
    }

    fn absolute(&self, value: u64) {
        let before = self.total.fetch_max(value, Ordering::Relaxed);
        self.add(value.saturating_sub(before));
    }
}

struct GaugeState {
    gauge: otel::Gauge<f64>,
    attributes: Vec<KeyValue>,
    value: Mutex<f64>,
}

impl GaugeState {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        // Recorded under the lock, so that the last value is the latest.
        let mut value = lock(&self.value);
        *value = change(*value);
        self.gauge.record(*value, &self.attributes);
    }
}

impl GaugeFn for GaugeState {
    fn increment(&self, by: f64) {
        self.change(|value| value + by);
    }

    fn decrement(&self, by: f64) {
        self.change(|value| value - by);
    }

    fn set(&self, to: f64) {
        self.change(|_| to);
    }
}

struct HistogramState {
    histogram: otel::Histogram<f64>,
    attributes: Vec<KeyValue>,
}

impl HistogramFn for HistogramState {
    fn record(&self, value: f64) {
        self.histogram.record(value, &self.attributes);
    }
}
