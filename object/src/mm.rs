//! The mappings of an address space.

use alloc::sync::Arc;

use janua_port::Space;
use janua_rt::RwLock;

/// An address space with its list of mappings.
pub struct Mm {
    pub space: RwLock<Arc<dyn Space>>,
}
