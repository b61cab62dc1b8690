//! How an agent's series look in Prometheus, by how it is scraped.

/// A way to scrape an agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scrape {
    pub(crate) name: &'static str,
    pub(crate) job: &'static str,
    pub(crate) instance: &'static str,
    /// What the target has besides.
    target: &'static str,
    /// Before the names of the agent's own labels that the target has as well.
    renamed: &'static str,
}

/// All that the rules and the dashboard are to work with.
pub(crate) const SCRAPES: [Scrape; 4] = [
    Scrape { name: "plain", job: "shunt", instance: "192.0.2.1:9100", target: "", renamed: "" },
    Scrape { name: "relabelled", job: "nodes", instance: "node-1", target: r#",cluster="a""#, renamed: "" },
    Scrape {
        name: "a PodMonitor",
        job: "kube-system/shunt",
        instance: "192.0.2.1:9100",
        target: r#",namespace="kube-system",pod="shunt-x7f2p",container="agent",endpoint="metrics""#,
        renamed: "exported_",
    },
    Scrape {
        name: "the chart's PodMonitor",
        job: "kube-system/shunt",
        instance: "192.0.2.1:9100",
        target: r#",node="node-1",endpoint="metrics""#,
        renamed: "",
    },
];

impl Scrape {
    /// A series, as `METRIC{LABELS}`, under the labels that it has in Prometheus.
    pub(crate) fn series(&self, series: &str) -> String {
        let (metric, labels) = series.split_once('{').unwrap_or((series, "}"));
        let mut own = labels.trim_end_matches('}').to_owned();
        for label in ["namespace", "pod", "container"] {
            own = own.replace(&format!("{label}=\""), &format!("{}{label}=\"", self.renamed));
        }
        let separator = if own.is_empty() { "" } else { "," };
        let Self { job, instance, target, .. } = self;
        format!("{metric}{{{own}{separator}job=\"{job}\",instance=\"{instance}\"{target}}}")
    }
}
