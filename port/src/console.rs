//! The kernel's own voice: log lines and fault reports, never a guest's output.

/// Where kernel messages go.
pub trait Console: Send + Sync {
    /// Writes the bytes as they are; best effort, never blocks for long, never fails.
    fn write(&self, bytes: &[u8]);
}
