//! The export of spans: OTLP over gRPC, configured by OpenTelemetry's own variables. Nobody waits for the collector; spans that it does not take are
//! lost, which the log says.

use tracing::Subscriber;
use tracing_subscriber::registry::LookupSpan;

/// Where spans go, for all signals and for this one (OpenTelemetry Protocol Exporter, "Endpoint URLs for OTLP/HTTP" and below).
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// A variable of OpenTelemetry's that turns all of it off, and one that names the exporter.
const OFF: [(&str, &str); 2] = [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")];

/// The names of the threads that export. They have nothing that others use.
pub const THREADS: [&str; 2] = ["spans", "OpenTelemetry.Traces.BatchProcessor"];

/// Why spans are not exported although somebody wants them to be.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The build cannot.
    #[error("this build exports no spans (feature `otlp`)")]
    NotBuilt,
    /// The variables say what cannot be.
    #[cfg(feature = "otlp")]
    #[error("spans cannot be exported: {0}")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// There is nobody to do it.
    #[cfg(feature = "otlp")]
    #[error("spans cannot be exported: {0}")]
    Runtime(#[from] std::io::Error),
}

/// Exports spans until it is dropped, which tells the last ones.
#[derive(Debug)]
pub struct Export(
    #[cfg(feature = "otlp")]
    #[expect(dead_code, reason = "only its end matters")]
    otlp::Export,
);

/// What hears of spans.
pub type Layer<S> = Box<dyn tracing_subscriber::Layer<S> + Send + Sync>;

/// What hears of spans, where a variable names a collector.
///
/// # Errors
/// [`ExportError`].
pub fn layer<S>() -> Result<Option<(Layer<S>, Export)>, ExportError>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let is_wanted =
        ENDPOINTS.into_iter().any(|name| std::env::var_os(name).is_some_and(|url| !url.is_empty()));
    let says = |(name, value): (&str, &str)| {
        std::env::var(name).is_ok_and(|said| said.trim().eq_ignore_ascii_case(value))
    };
    if is_wanted && !OFF.into_iter().any(says) { built().map(Some) } else { Ok(None) }
}

#[cfg(not(feature = "otlp"))]
fn built<S>() -> Result<(Layer<S>, Export), ExportError> {
    Err(ExportError::NotBuilt)
}

#[cfg(feature = "otlp")]
fn built<S>() -> Result<(Layer<S>, Export), ExportError>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let (layer, export) = otlp::start()?;
    Ok((layer, Export(export)))
}

#[cfg(feature = "otlp")]
mod otlp {
    //! Export by OpenTelemetry's own library.

    use std::thread;
    use std::time::Duration;

    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_otlp::SpanExporter;
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tokio::sync::oneshot;
    use tracing::{Level, Metadata, Subscriber};
    use tracing_subscriber::Layer as _;
    use tracing_subscriber::filter::filter_fn;
    use tracing_subscriber::registry::LookupSpan;

    use super::{ExportError, Layer, THREADS};
    use crate::span::SPAN;

    /// The service's name, unless `OTEL_SERVICE_NAME` says so.
    const SERVICE: &str = "shunt-agent";

    /// How long the last spans may take: the next agent waits for the end of this one.
    const LAST: Duration = Duration::from_millis(300);

    #[derive(Debug)]
    pub(super) struct Export {
        provider: SdkTracerProvider,
        /// Dropped, it ends the thread that speaks with the collector.
        _over: oneshot::Sender<()>,
    }

    impl Drop for Export {
        fn drop(&mut self) {
            // A collector that is away keeps nobody.
            let _lost = self.provider.shutdown_with_timeout(LAST);
        }
    }

    pub(super) fn start<S>() -> Result<(Layer<S>, Export), ExportError>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        // The agent's own runtime is not there yet, and need not have time for a collector.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let exporter = {
            let _entered = runtime.enter();
            SpanExporter::builder().with_tonic().build()?
        };
        let (_over, ends) = oneshot::channel::<()>();
        let speak = move || {
            let _dropped = runtime.block_on(ends);
        };
        thread::Builder::new().name(THREADS[0].into()).spawn(speak)?;
        let resource = Resource::builder();
        let resource = match std::env::var_os("OTEL_SERVICE_NAME") {
            Some(_) => resource,
            None => resource.with_service_name(SERVICE),
        };
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer(SERVICE));
        // Libraries have spans of their own, the exporter's among them.
        let is_told = |it: &Metadata<'_>| it.target() == SPAN || it.is_event() && *it.level() <= Level::INFO;
        let filter = filter_fn(is_told).with_max_level_hint(Level::INFO);
        let layer = layer.with_filter(filter);
        Ok((layer.boxed(), Export { provider, _over }))
    }
}
