/** A line without a gap, and a cursor on it. */
export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect width="32" height="32" rx="8" fill="#0f766e"/>
<rect x="5" y="14" width="17" height="4" rx="2" fill="#fff"/>
<rect x="22" y="8" width="4" height="16" rx="2" fill="#fff"/>
</svg>
`;
