//! What many samples come to.

use serde::{Deserialize, Serialize};

/// How many quantiles are kept of a distribution: the least, the greatest, and evenly many between.
const QUANTILES: usize = 41;

/// Samples of one thing, summed up. Times are in the row's unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub samples: usize,
    pub min: f64,
    pub median: f64,
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
    pub p10: f64,
    pub p90: f64,
    pub max: f64,
    /// Evenly spaced quantiles from the least to the greatest sample, both included.
    pub quantiles: Vec<f64>,
}

impl Summary {
    /// `None` when there are no samples.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        let mut sorted: Vec<f64> = samples.iter().copied().filter(|sample| sample.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let count = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let variance = sorted.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / count;
        let part = |index: usize| quantile(&sorted, index as f64 / (QUANTILES - 1) as f64);
        Some(Summary {
            samples: sorted.len(),
            min: rounded(min),
            median: rounded(quantile(&sorted, 0.5)),
            mean: rounded(mean),
            deviation: rounded(variance.sqrt()),
            p10: rounded(quantile(&sorted, 0.1)),
            p90: rounded(quantile(&sorted, 0.9)),
            max: rounded(max),
            quantiles: (0..QUANTILES).map(|index| rounded(part(index))).collect(),
        })
    }

    /// How far apart the middle four fifths are, as a part of the median.
    pub fn spread(&self) -> f64 {
        if self.median > 0.0 { (self.p90 - self.p10) / self.median } else { 0.0 }
    }
}

/// The value below which `part` of the sorted samples are, between neighbours by a straight line.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

/// Three decimals: more than any clock here gives.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_nothing_nothing() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[f64::NAN]), None);
    }

    #[test]
    fn of_one_itself() {
        let summary = Summary::of(&[7.0]).unwrap();
        assert_eq!((summary.min, summary.median, summary.max, summary.deviation), (7.0, 7.0, 7.0, 0.0));
        assert_eq!(summary.spread(), 0.0);
        assert!(summary.quantiles.iter().all(|q| *q == 7.0));
    }

    #[test]
    fn order_does_not_matter() {
        let summary = Summary::of(&[5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        assert_eq!((summary.min, summary.median, summary.mean, summary.max), (1.0, 3.0, 3.0, 5.0));
        assert_eq!((summary.p10, summary.p90), (1.4, 4.6));
        assert_eq!(summary.deviation, 1.414);
        assert!((summary.spread() - 3.2 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn quantiles_run_from_least_to_greatest() {
        let samples: Vec<f64> = (0..=100).map(f64::from).collect();
        let summary = Summary::of(&samples).unwrap();
        assert_eq!(summary.quantiles.len(), QUANTILES);
        assert_eq!((summary.quantiles[0], summary.quantiles[20], summary.quantiles[40]), (0.0, 50.0, 100.0));
        assert!(summary.quantiles.is_sorted());
    }

    #[test]
    fn an_even_number_has_a_median_between() {
        assert_eq!(Summary::of(&[1.0, 2.0]).unwrap().median, 1.5);
    }
}
