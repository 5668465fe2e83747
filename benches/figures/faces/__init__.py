"""One module for each figure of the page and of the terminal, and Chromium, which shows the page."""
