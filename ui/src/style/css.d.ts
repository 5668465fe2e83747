// A style sheet is imported for what it does alone.
declare module '*.css';
