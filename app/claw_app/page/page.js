// Gives the terminal the keyboard as soon as it is there, and whenever the window gets it back: nobody need click first.
const focusTerminal = () => document.querySelector(".xterm-helper-textarea")?.focus();
new MutationObserver(focusTerminal).observe(document.body, { attributes: true, attributeFilter: ["class"] });
window.addEventListener("focus", focusTerminal);
