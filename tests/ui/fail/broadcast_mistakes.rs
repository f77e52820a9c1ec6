use dq::prelude::*;

macro_rules! on_message {
    ($listener:ident) => {
        impl BroadcastListener for $listener {
            type Message = String;

            async fn on_message(&self, expired: Broadcast<String>) -> Result<(), JobError> {
                let _ = expired.message;
                Ok(())
            }
        }
    };
}

#[broadcast_listener(channel = ["cache-expired"])]
struct BroadcastChannelMisspelt;
on_message!(BroadcastChannelMisspelt);

#[broadcast_listener(channels = "cache-expired")]
struct BroadcastChannelWithoutList;
on_message!(BroadcastChannelWithoutList);

#[broadcast_listener(channels = [])]
struct BroadcastChannelsEmpty;
on_message!(BroadcastChannelsEmpty);

#[broadcast_listener]
struct BroadcastWithoutChannels;
on_message!(BroadcastWithoutChannels);

#[broadcast_listener(channels = ["cache-expired", "cache-expired", 7, "a b"], chanels = ["x"], regster = false)]
struct EveryMistakeOfOneBroadcastListenerAtOnce;
on_message!(EveryMistakeOfOneBroadcastListenerAtOnce);

#[broadcast_listener(channels = ["cache-expired"])]
struct BroadcastIsGeneric<T> {
    cache: T,
}

#[broadcast_listener(channels = ["cache-expired"])]
async fn broadcast_on_a_function() {}

fn main() {}
