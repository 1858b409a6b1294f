// Without VitePress's web fonts: pages use the fonts of the system.
import DefaultTheme from "vitepress/theme-without-fonts";
import "./style.css";

export default DefaultTheme;
