//! JSON payloads, for jobs without a payload type.

use serde_json::Value;

use crate::job::{check_json, to_json};

/// A payload without a type of its own: a [`Value`], or JSON text.
pub trait IntoJson {
    /// Returns the JSON text.
    ///
    /// # Errors
    /// If the text is not JSON, or is nested deeper than a decoder accepts (127).
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error>;
}

impl IntoJson for Value {
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        to_json(&self)
    }
}

impl IntoJson for &Value {
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        to_json(self)
    }
}

impl IntoJson for String {
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        check_json(&self)?;
        Ok(self.into_bytes())
    }
}

impl IntoJson for &str {
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        self.to_owned().into_json()
    }
}
