//! JSON payloads, for jobs without a payload type.

use serde_json::Value;

/// A payload without a type of its own: a [`Value`], or JSON text.
pub trait IntoJson {
    /// Returns the JSON text.
    ///
    /// # Errors
    /// If the text is not JSON.
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error>;
}

impl IntoJson for Value {
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&self)
    }
}

impl IntoJson for &Value {
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }
}

impl IntoJson for String {
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::from_str::<serde::de::IgnoredAny>(&self)?;
        Ok(self.into_bytes())
    }
}

impl IntoJson for &str {
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        self.to_owned().into_json()
    }
}
