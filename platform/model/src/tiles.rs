//! Several kernels on one machine, as tiles: each pair has a link.

use std::collections::BTreeMap;
use std::sync::Arc;

use janua_port::{Link, Tiles};

struct ModelTiles {
    own: u32,
    count: u32,
    /// By the lower number and the higher one.
    links: Arc<BTreeMap<[u32; 2], &'static Link>>,
}

impl Tiles for ModelTiles {
    fn count(&self) -> u32 {
        self.count
    }
    fn own(&self) -> u32 {
        self.own
    }
    fn link(&self, peer: u32) -> Option<&'static Link> {
        self.links.get(&[self.own.min(peer), self.own.max(peer)]).copied()
    }
}

/// What each of so many tiles is shown. Their links are never given back, as the machine is not.
pub fn tiles(count: u32) -> Vec<Box<dyn Tiles>> {
    let pairs = (0..count).flat_map(|lower| (lower + 1..count).map(move |higher| [lower, higher]));
    let links = pairs.map(|pair| (pair, &*Box::leak(Box::<Link>::default())));
    let links: Arc<BTreeMap<_, _>> = Arc::new(links.collect());
    (0..count).map(|own| Box::new(ModelTiles { own, count, links: links.clone() }) as Box<dyn Tiles>).collect()
}
