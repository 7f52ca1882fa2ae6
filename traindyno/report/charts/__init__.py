"""The report's charts: each draws one kind of figure as SVG."""
