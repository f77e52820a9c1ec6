//! Payloads of the untyped form: JSON.

use serde_json::Value;

/// What can be the payload of an untyped job: a [`Value`], or text that is JSON.
pub trait IntoJson {
    /// The JSON text.
    ///
    /// # Errors
    /// When it is no JSON.
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
