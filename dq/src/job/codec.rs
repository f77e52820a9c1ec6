//! The encoding of what users store.

/// How a payload, or a state, is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// JSON text.
    Json,
}

impl Codec {
    pub(super) const fn byte(self) -> u8 {
        match self {
            Self::Json => b'J',
        }
    }

    pub(super) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            b'J' => Some(Self::Json),
            _ => None,
        }
    }
}
