// Goes on with bulk changes, step by step, and says whether a page is live.
document.querySelectorAll("form[data-go-on]").forEach((form) => setTimeout(() => form.requestSubmit(), 400));
// Other ports of this host get the cookie, but not what this origin stores: a key, which is made at the login and sent with each change.
// Where a browser stores nothing, the session has no key.
const place = `dq-key:${new URL(document.currentScript.src).pathname}`;
const stored = (key) => {
  try {
    if (key) localStorage.setItem(place, key);
    return localStorage.getItem(place);
  } catch {
    return null;
  }
};
const newKey = () => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))));
addEventListener("submit", ({ target: form }) => {
  if (form.method !== "post") return;
  const key = stored(form.elements.token ? newKey() : null);
  const field = form.elements.key ?? form.appendChild(document.createElement("input"));
  Object.assign(field, { type: "hidden", name: "key", value: key ?? "" });
});
// A link with a token logs in, and the address bar forgets the token.
const login = document.querySelector("form[data-log-in]");
const logIn = () => {
  if (!login || location.hash.length < 2) return;
  login.elements.token.value = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
  login.requestSubmit();
};
logIn();
addEventListener("hashchange", logIn);
const live = document.getElementById("live");
if (live) {
  const say = (text, on) => {
    if (live.textContent !== text) live.textContent = text;
    live.hidden = false;
    live.classList.toggle("on", on);
  };
  say("connecting", false);
  let last = 0;
  // A browser keeps pages that it left, with their streams, and has few connections for each host: so a page closes its own.
  let connection = null;
  document.addEventListener("htmx:sse:after:connection", (event) => {
    connection = event.detail.connection;
  });
  addEventListener("pagehide", () => connection?.abortController?.abort());
  addEventListener("pageshow", (event) => event.persisted && location.reload());
  document.addEventListener("htmx:sse:after:message", () => {
    last = Date.now();
    say("live", true);
  });
  setInterval(() => {
    if (last && Date.now() - last > 8000) say("not live", false);
  }, 1000);
}
