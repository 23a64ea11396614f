//! Metrics in Prometheus' text format (feature `prometheus`), which go to OTLP as well if that is configured.

#[cfg(feature = "prometheus")]
pub(crate) use with_exporter::Metrics;
#[cfg(not(feature = "prometheus"))]
pub(crate) use without::Metrics;

#[cfg(feature = "otlp")]
use crate::telemetry::Telemetry;

/// Sends the metrics to where telemetry goes, and nowhere else.
#[cfg(feature = "otlp")]
pub(crate) fn send(telemetry: &Telemetry) {
    let installed = telemetry.otlp.as_ref().map(|otlp| otlp.install_metrics());
    if let Some(Err(error)) = installed {
        tracing::warn!("cannot send metrics: {error}");
    }
}

#[cfg(not(feature = "otlp"))]
pub(crate) fn send(_: &crate::telemetry::Telemetry) {}

#[cfg(feature = "prometheus")]
mod with_exporter {
    use std::error::Error;
    use std::thread;
    use std::time::Duration;

    use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

    use crate::telemetry::Telemetry;

    /// The interval between drains of the exporter's histograms.
    const UPKEEP: Duration = Duration::from_secs(5);

    /// The metrics of this process.
    #[derive(Clone)]
    pub(crate) struct Metrics(PrometheusHandle);

    impl Metrics {
        /// Starts to collect metrics.
        pub(crate) fn collect(telemetry: &Telemetry) -> Result<Self, Box<dyn Error + Send + Sync>> {
            let handle = install(PrometheusBuilder::new(), telemetry)?;
            let upkeep = handle.clone();
            thread::Builder::new()
                .name("batch-metrics-upkeep".into())
                .spawn(move || {
                    loop {
                        thread::sleep(UPKEEP);
                        upkeep.run_upkeep();
                    }
                })?;
            Ok(Self(handle))
        }

        /// Returns them as text; none without the feature.
        pub(crate) fn text(&self) -> Option<String> {
            Some(self.0.render())
        }
    }

    #[cfg(feature = "otlp")]
    fn install(
        endpoint: PrometheusBuilder,
        telemetry: &Telemetry,
    ) -> Result<PrometheusHandle, Box<dyn Error + Send + Sync>> {
        let Some(otlp) = &telemetry.otlp else {
            return Ok(endpoint.install_recorder()?);
        };
        let recorder = endpoint.build_recorder();
        let handle = recorder.handle();
        otlp.install_metrics_with(recorder)?;
        Ok(handle)
    }

    #[cfg(not(feature = "otlp"))]
    fn install(
        endpoint: PrometheusBuilder,
        _: &Telemetry,
    ) -> Result<PrometheusHandle, Box<dyn Error + Send + Sync>> {
        Ok(endpoint.install_recorder()?)
    }
}

#[cfg(not(feature = "prometheus"))]
mod without {
    use std::error::Error;

    use crate::telemetry::Telemetry;

    /// No metrics.
    #[derive(Clone)]
    pub(crate) struct Metrics;

    impl Metrics {
        /// Sends the metrics to where telemetry goes.
        pub(crate) fn collect(telemetry: &Telemetry) -> Result<Self, Box<dyn Error + Send + Sync>> {
            super::send(telemetry);
            Ok(Self)
        }

        /// Returns none.
        pub(crate) fn text(&self) -> Option<String> {
            None
        }
    }
}
