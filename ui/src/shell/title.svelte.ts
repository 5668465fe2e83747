/** Names the tab of the browser after what it shows, for as long as that is shown. */
export function showTitle(title: () => string): void {
  $effect(() => {
    document.title = `${title()} · Towline`;
  });
}
