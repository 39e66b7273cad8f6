//! A measurement as it is written to a file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::stats::Summary;

/// The version of the file's form. A reader refuses others.
pub const SCHEMA: u32 = 1;

/// The name of the configuration without Janua.
pub const NATIVE: &str = "native";

/// Above this spread of native samples the machine was noisy.
pub const NOISY: f64 = 0.25;

/// Which table is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Gates,
    Calls,
    Apps,
    /// Curves: what an operation costs among many things.
    Scale,
    /// Calls of the invasive personality, in its configurations.
    Invasive,
    /// The six tasks of a thesis, with calls at home and away.
    Tasks,
    /// Calls and messages of L4.
    Pingpong,
    /// Messages between tiles.
    Messages,
    /// Events of libpal.
    Events,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Gates => "gates",
            Kind::Calls => "calls",
            Kind::Apps => "apps",
            Kind::Scale => "scale",
            Kind::Invasive => "invasive",
            Kind::Tasks => "tasks",
            Kind::Pingpong => "pingpong",
            Kind::Messages => "messages",
            Kind::Events => "events",
        }
    }
}

/// One run of `janua bench`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    pub schema: u32,
    pub kind: Kind,
    /// UTC, as `2026-01-31T23:59:59Z`.
    pub date: String,
    pub tool: Tool,
    pub machine: Machine,
    pub method: Method,
    /// What was measured, native first.
    pub configurations: Vec<Configuration>,
    /// What was not, and why.
    pub refused: Vec<Refused>,
    pub rows: Vec<RowResult>,
    /// What a reader must know, for example that the machine was noisy.
    pub notes: Vec<String>,
}

/// What measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub version: String,
    pub commit: String,
    /// The profile of the kernel image: `image` (release), `image-fast`, or where it came from.
    pub image: String,
}

/// Where it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub processors: usize,
    /// Family, model and stepping.
    pub stepping: String,
    pub kernel: String,
    pub kernel_version: String,
    pub virtual_machine: bool,
    pub memory_kib: u64,
    pub governor: Option<String>,
    /// Ticks of the time stamp counter in a second.
    pub tsc_hz: f64,
    pub tsc_steady: bool,
    pub flags: Vec<String>,
    /// The host's answers to hardware weaknesses, by name.
    pub mitigations: BTreeMap<String, String>,
    /// Load over the last minute, at start and end.
    pub load: [f64; 2],
}

/// How it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Method {
    pub runs: usize,
    pub samples: usize,
    /// The processor that rows for one processor were pinned to.
    pub pinned: Option<usize>,
}

/// A way to run programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// `native`, gate/jail, or the bare machine's ([`crate::emulated::NAME`]).
    pub name: String,
    pub gate: Option<String>,
    pub jail: Option<String>,
}

impl Configuration {
    pub fn native() -> Configuration {
        Configuration { name: NATIVE.into(), gate: None, jail: None }
    }

    pub fn emulated() -> Configuration {
        Configuration { name: crate::emulated::NAME.into(), gate: None, jail: None }
    }

    /// Whether it is `janua run`.
    pub fn is_hosted(&self) -> bool {
        self.gate.is_some()
    }

    pub fn janua(gate: &str, jail: &str) -> Configuration {
        Configuration { name: format!("{gate}/{jail}"), gate: Some(gate.into()), jail: Some(jail.into()) }
    }
}

/// A configuration that does not work here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub name: String,
    pub reason: String,
}

/// What a number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Counted, where a machine is emulated: the same in every run.
    #[serde(rename = "instructions")]
    Instructions,
    /// Misses of a model of the processor's TLB.
    #[serde(rename = "misses")]
    Misses,
    #[serde(rename = "KiB")]
    Kibibytes,
    /// More is better.
    #[serde(rename = "1/s")]
    PerSecond,
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowResult {
    pub name: String,
    pub title: String,
    pub group: String,
    pub unit: Unit,
    pub cells: Vec<Cell>,
}

/// One row under one configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub configuration: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<Summary>,
    /// Why there is no result.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub skipped: Option<String>,
    /// The share of calls that went by a gate without a trap, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fast_share: Option<f64>,
}

impl RowResult {
    /// The summary under a configuration.
    pub fn under(&self, configuration: &str) -> Option<&Summary> {
        self.cells.iter().find(|cell| cell.configuration == configuration)?.result.as_ref()
    }

    /// A configuration's figure as a multiple of native's, both the best of the run: below 1 is better than native.
    pub fn ratio(&self, configuration: &str) -> Option<f64> {
        let (native, other) = (self.under(NATIVE)?, self.under(configuration)?);
        let ratio = match self.unit {
            Unit::PerSecond => native.max / other.max,
            Unit::Nanoseconds | Unit::Instructions | Unit::Misses | Unit::Kibibytes => other.min / native.min,
        };
        ratio.is_finite().then_some(ratio)
    }
}

impl Measurement {
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads a file's text; the error is for people.
    pub fn from_json(text: &str) -> Result<Measurement, String> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            None => return Err("not a measurement: it names no schema".into()),
            Some(schema) if schema != u64::from(SCHEMA) => {
                return Err(format!("schema {schema}, and this janua reads schema {SCHEMA}"));
            }
            Some(_) => {}
        }
        serde_json::from_value(value).map_err(|error| format!("not a measurement: {error}"))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A small measurement for tests.
    pub fn example() -> Measurement {
        let cell = |configuration: &str, samples: &[f64]| Cell {
            configuration: configuration.into(),
            result: Summary::of(samples),
            skipped: samples.is_empty().then(|| "reason <b>&\"".into()),
            fast_share: None,
        };
        Measurement {
            schema: SCHEMA,
            kind: Kind::Gates,
            date: "2026-01-31T00:00:00Z".into(),
            tool: Tool { version: "0.1.0".into(), commit: "abc".into(), image: "image".into() },
            machine: Machine { processor: "A <CPU> & co".into(), ..Machine::default() },
            method: Method { runs: 1, samples: 2, pinned: Some(0) },
            configurations: vec![Configuration::native(), Configuration::janua("sud", "none")],
            refused: vec![Refused { name: "kvm/none".into(), reason: "not built".into() }],
            rows: vec![
                RowResult {
                    name: "syscall".into(),
                    title: "getppid by syscall".into(),
                    group: "gate".into(),
                    unit: Unit::Nanoseconds,
                    cells: vec![cell(NATIVE, &[100.0, 110.0]), cell("sud/none", &[1000.0, 1200.0])],
                },
                RowResult {
                    name: "int80".into(),
                    title: "int <80>".into(),
                    group: "gate".into(),
                    unit: Unit::Nanoseconds,
                    cells: vec![cell(NATIVE, &[400.0]), cell("sud/none", &[])],
                },
            ],
            notes: vec!["a < b".into()],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let example = example();
        assert_eq!(Measurement::from_json(&example.to_json()), Ok(example));
    }

    #[test]
    fn other_files_are_refused() {
        assert!(Measurement::from_json("{").unwrap_err().contains("not JSON"));
        assert!(Measurement::from_json("[1]").unwrap_err().contains("no schema"));
        assert!(Measurement::from_json("{\"schema\": 99}").unwrap_err().contains("schema 99"));
        assert!(Measurement::from_json("{\"schema\": 1}").unwrap_err().contains("not a measurement"));
    }

    #[test]
    fn ratios_compare_the_best() {
        let mut row = example().rows.remove(0);
        assert_eq!(row.ratio("sud/none"), Some(10.0));
        assert_eq!(row.ratio("nothing"), None);
        row.unit = Unit::PerSecond;
        assert_eq!(row.ratio("sud/none"), Some(110.0 / 1200.0));
    }
}
